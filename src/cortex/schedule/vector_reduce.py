"""VectorReduce: sum by vectors, in a fixed order."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ir.scalar import Expr, Float, Int, Load, Var
from cortex.ir.simplify import add, free_vars, mul, substitute
from cortex.ir.step import Step, step
from cortex.lower.nests import START
from cortex.schedule.locate import Names, constant_extent, find_loop, refuse, replace_loop


@step
class VectorReduce(Step[Func]):
    """Reduce `lanes` elements at a time into as many partial results, then combine those pairwise.

    before:  for k in 0..100: t += x[k]
    after:   part[0..16] = 0; for k_o in 0..6: part[l] += x[k_o*16 + l]
             part[0..8] += part[8..16]; part[0..4] += part[4..8]; ...; t += part[0]
             for k in 96..100: t += x[k]
    legal:   the loop holds one accumulation into an element that does not depend on it, and has a constant extent
             of at least `lanes`, a power of two. The order is fixed by the extent, so results do not depend on
             the request.
    """

    loop: str
    lanes: int

    def apply(self, f: Func) -> Func:
        """`f` with the reduction vectorized."""
        loop = find_loop(f, self.loop, self)
        extent = constant_extent(loop)
        if extent is None or extent < self.lanes:
            refuse(self, f"the extent of {self.loop!r} is not a constant of at least {self.lanes}.", f, self.loop)
        match loop.body:
            case (Accumulate() as target,) if self.loop not in free_vars(target.index):
                pass
            case _:
                refuse(self, f"{self.loop!r} is not one sum into one element.", f, self.loop)
        names = Names(f)
        part = Buffer(names.fresh(f"{target.buffer}_part"), "f32", (Int(self.lanes),), Scope.REGISTER)

        def lanes(count: int, offset: int, block: Var | None) -> Stmt:
            lane = Var(names.fresh(f"{self.loop}_l"))
            value: Expr
            if block is None:
                value = Load(part.name, (add(lane, offset),))
            else:
                value = substitute(target.value, {self.loop: add(mul(block, self.lanes), lane)})
            body = (Accumulate(part.name, (lane,), target.fn, value),)
            return For(lane.name, Int(0), Int(count), body, LoopKind.VECTORIZED)

        first = Var(names.fresh(f"{self.loop}_l"))
        start = (Store(part.name, (first,), Float(START[target.fn])),)
        block = Var(names.fresh(f"{self.loop}_o"))
        stmts: list[Stmt] = [
            For(first.name, Int(0), Int(self.lanes), start, LoopKind.VECTORIZED),
            For(block.name, Int(0), Int(extent // self.lanes), (lanes(self.lanes, 0, block),)),
        ]
        half = self.lanes // 2
        while half:
            stmts.append(lanes(half, half, None))
            half //= 2
        stmts.append(replace(target, value=Load(part.name, (Int(0),))))
        if extent % self.lanes:
            stmts.append(replace(loop, lo=Int(extent - extent % self.lanes)))
        return replace(replace_loop(f, self.loop, tuple(stmts)), buffers=(*f.buffers, part))
