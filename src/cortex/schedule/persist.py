"""Persist: hold that a thread reads the same share of a buffer in every group."""

from __future__ import annotations

from cortex.ilir.ir import Func, Scope
from cortex.ir.node import walk
from cortex.ir.scalar import Int, Load
from cortex.ir.simplify import free_vars, simplify
from cortex.ir.step import Step, step
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import refuse
from cortex.schedule.ownership import Around, Place, expressions_of, place, statements


@step
class Persist(Step[Func]):
    """A thread reads the same blocks of `buffer` wherever it reads it, so they stay in the cache of its core.

    before:  for g: for p in 0..8 parallel: for n: for k: ... packed[p, k, 0, l]
    after:   the same
    legal:   every read stands in a parallel loop of the same constant bounds and stays within blocks that the
             iteration owns, or is done by one thread alone; the buffer is a weight.

    The program does not change: shares depend on bounds alone. The step is there to be refused when another step has
    spoilt this, and for the cost model, which counts such a buffer once per thread and call.
    """

    buffer: str

    def apply(self, f: Func) -> Func:
        """`f`, in which the buffer persists."""
        buffer = next((b for b in f.buffers if b.name == self.buffer), None)
        if buffer is None or buffer.scope not in (Scope.PARAM, Scope.PACKED):
            refuse(self, f"{self.buffer!r} is not a weight of {f.name}.", f, "")
        known = QuickRules.of(f)
        shares = {self._share(f, known, load, around) for load, around in _reads(f, self.buffer)} - {None}
        if len(shares) > 1:
            refuse(self, f"{self.buffer!r} is read by different threads in different places.", f, "")
        return f

    def _share(
        self, f: Func, known: QuickRules, load: Load, around: Around
    ) -> tuple[int, int, tuple[Place | None, ...]] | None:
        """The bounds and blocks by which a read is shared out; None for what one thread does alone."""
        loop = around.parallel
        if loop is None:
            refuse(self, f"every thread reads all of {self.buffer!r}.", f, "")
        if not isinstance(loop.lo, Int) or not isinstance(loop.hi, Int):
            refuse(self, f"shares of {loop.var!r} differ from group to group.", f, loop.var)
        if (loop.lo, loop.hi) == (Int(0), Int(1)):
            return None
        bounds = around.constant_bounds()
        places = tuple(place(known, simplify(e, bounds), around, loop) for e in load.index)
        owned = tuple(p if p is not None and not free_vars(p.offset) else None for p in places)
        if not any(owned):
            refuse(self, f"iterations of {loop.var!r} share blocks of {self.buffer!r}.", f, loop.var)
        return loop.lo.value, loop.hi.value, owned


def _reads(f: Func, buffer: str) -> list[tuple[Load, Around]]:
    return [
        (n, around)
        for s, around in statements(f.body, Around())
        for e in expressions_of(s)
        for n in walk(e)
        if isinstance(n, Load) and n.buffer == buffer
    ]
