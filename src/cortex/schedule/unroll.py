"""Unroll: write the iterations of a loop one after the other."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Func, LoopKind
from cortex.ir.scalar import Int
from cortex.ir.step import Step, step
from cortex.schedule.locate import Names, find_loop, loop_names, refuse, replace_loop
from cortex.schedule.split import Split

LIMIT = 1024  # iterations; beyond it, code grows and nothing is gained


@step
class Unroll(Step[Func]):
    """Unroll a loop of constant extent, or `factor` iterations at a time of any loop.

    before:  for k in 0..4: S(k)
    after:   for k in 0..4 unrolled: S(k)
    with factor=2, for k in 0..n:
             for k_o in 0..n//2: for k_i in 0..2 unrolled: S(k_o*2 + k_i)
             for k_t in n//2*2..n: S(k_t)
    legal:   without a factor, the bounds are constants at most 1024 apart; with one, whenever Split is. The loop is
             not vectorized. The order of iterations stays.
    """

    loop: str
    factor: int | None = None

    def apply(self, f: Func) -> Func:
        """`f` with the loop unrolled."""
        loop = find_loop(f, self.loop, self)
        if loop.kind is LoopKind.VECTORIZED:
            refuse(self, f"{self.loop!r} is vectorized; unroll a loop around it.", f, self.loop)
        if self.factor is not None:
            if not 1 <= self.factor <= LIMIT:
                refuse(self, f"the factor must be between 1 and {LIMIT}.", f, self.loop)
            names = Names(f)
            _, inner = names.fresh(f"{self.loop}_o"), names.fresh(f"{self.loop}_i")  # as Split will name them
            split = Split(self.loop, self.factor, "peel").apply(f)
            return Unroll(inner).apply(split) if inner in loop_names(split) else split
        if not (isinstance(loop.lo, Int) and isinstance(loop.hi, Int)):
            refuse(self, f"the bounds of {self.loop!r} are not constant. Give a factor.", f, self.loop)
        if loop.hi.value - loop.lo.value > LIMIT:
            refuse(self, f"{self.loop!r} has more than {LIMIT} iterations. Give a factor.", f, self.loop)
        return replace_loop(f, self.loop, (replace(loop, kind=LoopKind.UNROLLED, turned=None),))
