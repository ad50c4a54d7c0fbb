"""How long tracing and compiling may take: a model with kinds of node without end is refused, not waited for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import thread_time

from cortex.frontend.signals import OutOfTime

PER_NODE = 1e-4
"""Seconds that looking at a node may take, in addition: there may be millions, of few kinds."""


class Clock:
    """Counts the processor's time of the thread at work, so that what else the machine does is left out."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = math.inf
        self._nodes = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """The work takes place; what is inside it shares its time."""
        if self._end < math.inf:
            yield
            return
        self._end, self._nodes = thread_time() + self.seconds, 0
        token = _running.set(self)
        try:
            yield
        finally:
            self._end = math.inf
            _running.reset(token)

    def reached(self, nodes: int) -> None:
        """A walk has come to its node of this number."""
        self._nodes = max(self._nodes, nodes)

    def tick(self) -> None:
        """Stop the work if its time is over."""
        if thread_time() > self._end + PER_NODE * self._nodes:
            raise OutOfTime


_running: ContextVar[Clock | None] = ContextVar("cortex_clock", default=None)


def tick() -> None:
    """Stop the work that is under way if its time is over."""
    clock = _running.get()
    if clock is not None:
        clock.tick()
