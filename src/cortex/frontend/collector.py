"""Python's garbage collector while a model is traced.

Traces make many objects, which has the collector look at all objects of the process again and again: with torch loaded,
a third of a second each time. Young objects are collected as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

NEVER = 1 << 30

_lock = Lock()
_running = 0
_before = (0, 0, 0)


@contextmanager
def young_objects_only() -> Iterator[None]:
    """Leave old objects alone; in several threads at once, until the last is done."""
    global _running, _before
    with _lock:
        if _running == 0:
            _before = gc.get_threshold()
            gc.set_threshold(*_before[:2], NEVER)
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0 and gc.get_threshold() == (*_before[:2], NEVER):
                gc.set_threshold(*_before)
