"""The memory of this process, as Linux tells it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

import pytest

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to see memory")


def mapped() -> int:
    """Bytes of addresses."""
    return _pages(0)


def growth(run: Callable[[], object], rounds: int = 4) -> int:
    """Bytes in memory that every call of `run` adds: the fewest of several, since a leak is there every time."""
    found = []
    for _ in range(rounds):
        gc.collect()
        before = _pages(1)
        run()
        gc.collect()
        found.append(_pages(1) - before)
    return min(found)


def _pages(column: int) -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[column]) * os.sysconf("SC_PAGE_SIZE")
