"""Vectorize: run a loop of independent iterations by vectors."""

from __future__ import annotations

from cortex.ilir.ir import Accumulate, For, Func, Let, LoopKind, Stmt, Store
from cortex.ir.scalar import Int, Var
from cortex.ir.simplify import add, mul, substitute
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_any_order
from cortex.schedule.locate import Names, constant_extent, find_loop, refuse, replace_loop
from cortex.schedule.padding import padding_is_harmless


@step
class Vectorize(Step[Func]):
    """Run `lanes` iterations of an innermost loop at a time.

    before:  for j in 0..100: y[j] = f(x[j])
    after:   for j_o in 0..7: for j_l in 0..16 vectorized: y[j_o*16 + j_l] = f(...)     (rows are padded to 112)
             or, where running into the padding would do harm, six full vectors and one of four lanes
    legal:   the loop is innermost, of constant extent, and no iteration uses another's results.
    """

    loop: str
    lanes: int

    def apply(self, f: Func) -> Func:
        """`f` with the loop vectorized."""
        loop = find_loop(f, self.loop, self)
        extent = constant_extent(loop)
        if extent is None:
            refuse(self, f"the extent of {self.loop!r} is not constant.", f, self.loop)
        if self.lanes < 1:
            refuse(self, f"a vector cannot have {self.lanes} lanes; use at least 1.", f, self.loop)
        if loop.kind is LoopKind.VECTORIZED:
            refuse(self, f"{self.loop!r} is vectorized already.", f, self.loop)
        if not all(isinstance(s, Let | Store | Accumulate) for s in loop.body):
            refuse(self, f"{self.loop!r} is not an innermost loop without conditions.", f, self.loop)
        if conflict := why_not_any_order(f, (loop,)):
            refuse(self, f"iterations of {self.loop!r} depend on each other.", f, self.loop, conflict)
        names = Names(f)
        full, odd = divmod(extent, self.lanes)
        if odd and padding_is_harmless(f, loop.body, self.loop, extent, self.lanes):
            full, odd = full + 1, 0
        stmts: list[Stmt] = []
        if full:
            block, lane = Var(names.fresh(f"{self.loop}_o")), Var(names.fresh(f"{self.loop}_l"))
            body = substitute(loop.body, {self.loop: add(mul(block, self.lanes), lane)})
            vector = For(lane.name, Int(0), Int(self.lanes), body, LoopKind.VECTORIZED)
            stmts.append(For(block.name, Int(0), Int(full), (vector,)))
        if odd:
            lane = Var(names.fresh(f"{self.loop}_l"))
            body = substitute(loop.body, {self.loop: add(lane, full * self.lanes)})
            stmts.append(For(lane.name, Int(0), Int(odd), body, LoopKind.VECTORIZED))
        return replace_loop(f, self.loop, tuple(stmts))
