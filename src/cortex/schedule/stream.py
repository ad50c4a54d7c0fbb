"""Stream: write a result past the caches."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, Func, Scope
from cortex.ilir.streaming import stores_whole_vectors
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.step import Step, step
from cortex.schedule.locate import refuse


@step
class Stream(Step[Func]):
    """Write a state to memory past the caches, whose lines are then neither read first nor evict others.

    before:  y[q, k] = ...
    after:   y[q, k] = ...                     y is streamed: nontemporal stores, where its array begins at a vector
    legal:   the buffer is a state that the program does not read, written in whole vectors at multiples of
             their length. It pays where the result is larger than the caches: whoever reads it has to fetch it.
    """

    buffer: str

    def apply(self, f: Func) -> Func:
        """`f` with the buffer streamed."""
        b = next((b for b in f.buffers if b.name == self.buffer), None)
        if b is None or b.scope is not Scope.STATE:
            refuse(self, f"{self.buffer!r} is not a state.", f, "")
        if any(isinstance(n, Load | Accumulate) and n.buffer == self.buffer for n in walk(f)):
            refuse(self, f"the program reads {self.buffer!r}.", f, "")
        if not stores_whole_vectors(f, self.buffer):
            refuse(self, f"{self.buffer!r} is not written in whole vectors at multiples of their length.", f, "")
        return replace(f, buffers=tuple(replace(x, streamed=True) if x is b else x for x in f.buffers))
