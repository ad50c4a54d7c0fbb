"""ItemSums: add up a sum by all items of a work-group."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, Buffer, For, Func, If, LoopKind, Scope, Stmt, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Float, Int, Load, Var
from cortex.ir.simplify import add, ceildiv, free_vars, mul, substitute
from cortex.ir.step import Step, step
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, refuse, replace_loop
from cortex.schedule.ownership import context_of

START = {"add": 0.0, "max": float("-inf"), "min": float("inf")}


@step
class ItemSums(Step[Func]):
    """Let `items` items of axis x each sum a part of a reduction, and add their sums in pairs, halving their number.

    before:  for n parallel: { t[n] = 0; for k in 0..64: t[n] += x[n, k] }
    after:   for n parallel:
               t[n] = 0
               for k_x in 0..16 items x: { sum = 0; for k_o in 0..4: sum += x[n, k_o*16 + k_x]; part[k_x] = sum }
               for k_x in 0..8 items x: part[k_x] += part[k_x + 8]                     (and 4, 2, 1)
               for k_x in 0..1 items x: t[n] += part[0]
    legal:   `loop` has constant bounds from 0 and one accumulation, into an element that no loop inside changes and
             the accumulated value does not read; it is in a parallel loop and in no loop of items. `items` is a power
             of two. The order of the sum is another one, which the extent alone decides.
    """

    loop: str
    items: int

    def apply(self, f: Func) -> Func:
        """`f` with the sum shared among items."""
        loop = find_loop(f, self.loop, self)
        extent = constant_extent(loop)
        if self.items < 1 or self.items & (self.items - 1):
            refuse(self, f"{self.items} is no power of two.", f, self.loop)
        if extent is None or loop.kind is not LoopKind.SERIAL:
            refuse(self, f"{self.loop!r} is no serial loop from 0 to a constant.", f, self.loop)
        around = context_of(f, self.loop)
        kinds = {each.kind for each in around.loops}
        if LoopKind.PARALLEL not in kinds or kinds & {LoopKind.ITEMS_X, LoopKind.ITEMS_Y}:
            refuse(self, f"{self.loop!r} must be in a parallel loop and in no loop of items.", f, self.loop)
        target = _accumulation(loop)
        if target is None:
            refuse(self, f"{self.loop!r} holds more than one accumulation.", f, self.loop)
        inside = {n.var for n in walk(loop) if isinstance(n, For)}
        read = {n.buffer for n in walk(target.value) if isinstance(n, Load)}
        if free_vars(target.index) & inside or target.buffer in read:
            refuse(self, f"what is added up in {self.loop!r} is no sum of one element.", f, self.loop)
        names = Names(f)
        part = Buffer(names.fresh(f"{self.loop}_part"), "f32", (Int(self.items),), Scope.LOCAL)
        total = Buffer(names.fresh(f"{self.loop}_sum"), "f32", (Int(1),), Scope.REGISTER)
        stmts = (
            self._parts(names, loop, extent, target, part.name, total.name),
            *self._pairs(names, target, part.name),
        )
        last = Accumulate(target.buffer, target.index, target.fn, Load(part.name, (Int(0),)))
        done = _one_item(names, self.loop, (last,))
        return replace(replace_loop(f, self.loop, (*stmts, done)), buffers=(*f.buffers, part, total))

    def _parts(self, names: Names, loop: For, extent: int, target: Accumulate, part: str, total: str) -> Stmt:
        """Every item sums its part in a register."""
        item, turn = Var(names.fresh(f"{self.loop}_x")), Var(names.fresh(f"{self.loop}_o"))
        place = add(mul(turn, self.items), item)
        body: Block = tuple(_redirect(s, total) for s in substitute(loop.body, {self.loop: place}))
        if extent % self.items:
            body = (If(Binary("lt", place, Int(extent)), body),)
        summed = (
            Store(total, (Int(0),), Float(START[target.fn])),
            For(turn.name, Int(0), ceildiv(extent, self.items), body),
            Store(part, (item,), Load(total, (Int(0),))),
        )
        return For(item.name, Int(0), Int(self.items), summed, LoopKind.ITEMS_X)

    def _pairs(self, names: Names, target: Accumulate, part: str) -> list[Stmt]:
        stmts: list[Stmt] = []
        half = self.items // 2
        while half:
            item = Var(names.fresh(f"{self.loop}_x"))
            pair = Accumulate(part, (item,), target.fn, Load(part, (add(item, half),)))
            stmts.append(For(item.name, Int(0), Int(half), (pair,), LoopKind.ITEMS_X))
            half //= 2
        return stmts


def _one_item(names: Names, base: str, body: Block) -> For:
    return For(names.fresh(f"{base}_x"), Int(0), Int(1), body, LoopKind.ITEMS_X)


def _accumulation(loop: For) -> Accumulate | None:
    """The one statement of a perfect nest, if it is an accumulation."""
    match loop.body:
        case (Accumulate() as s,):
            return s
        case (For() as inner,):
            return _accumulation(inner)
        case _:
            return None


def _redirect(s: Stmt, total: str) -> Stmt:
    match s:
        case For():
            return replace(s, body=tuple(_redirect(each, total) for each in s.body))
        case Accumulate(_, _, fn, value):
            return Accumulate(total, (Int(0),), fn, value)
        case _:
            return s
