"""Peel: take iterations off the ends of a loop."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Func, If, LoopKind, Stmt
from cortex.ir.scalar import Binary, Expr, Int
from cortex.ir.simplify import add, sub, substitute
from cortex.ir.step import Step, step
from cortex.poly.extent import extent_of
from cortex.schedule.locate import Block, Names, find_loop, refuse, replace_loop
from cortex.schedule.rename import fresh_copy


@step
class Peel(Step[Func]):
    """Run the first `front` and the last `back` iterations apart from the loop.

    before:  for k in 0..8: S(k)
    after:   S(0); for k in 1..7: S(k); S(7)                              (front=1, back=1)
    for k in lo..hi:
             if lo < hi: S(lo); for k in lo + 1..hi: S(k)                 (front=1)
    legal:   always, for a loop whose bounds read no memory and that is not vectorized. A constant extent must be at
             least front + back.
    """

    loop: str
    front: int = 1
    back: int = 0

    def apply(self, f: Func) -> Func:
        """`f` with iterations peeled."""
        loop = find_loop(f, self.loop, self)
        if self.front < 0 or self.back < 0 or self.front + self.back < 1:
            refuse(self, "peel at least one iteration, at the front or at the back.", f, self.loop)
        if loop.kind is LoopKind.VECTORIZED:
            refuse(self, f"{self.loop!r} is vectorized; peel it before that.", f, self.loop)
        extent = extent_of(f, loop)
        if extent is None:
            refuse(self, f"the bounds of {self.loop!r} read memory.", f, self.loop)
        if isinstance(extent, Int) and extent.value < self.front + self.back:
            refuse(self, f"{self.loop!r} has only {extent.value} iterations.", f, self.loop)
        names = Names(f)

        def apart(at: Expr, there: Expr) -> Block:
            body = fresh_copy(substitute(loop.body, {self.loop: at}), names)
            return body if isinstance(extent, Int) else (If(there, body),)

        first, end = add(loop.lo, self.front), sub(loop.hi, self.back)
        stmts: list[Stmt] = []
        for i in range(self.front):
            stmts += apart(add(loop.lo, i), Binary("lt", add(loop.lo, i), loop.hi))
        stmts.append(replace(loop, lo=first, hi=end))
        for i in range(self.back, 0, -1):
            stmts += apart(sub(loop.hi, i), Binary("ge", sub(loop.hi, i), first))
        return replace_loop(f, self.loop, tuple(stmts))
