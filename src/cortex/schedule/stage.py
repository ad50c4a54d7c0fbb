"""Stage: work on a local copy of the part of a buffer that an iteration uses."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import NARROW, Buffer, For, Func, LoopKind, Scope, Stmt, Store, value_type
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Int, Load, Var
from cortex.ir.step import Step, step
from cortex.schedule.locate import Block, Names, find_loop, refuse, replace_loop
from cortex.schedule.part import Part, part_of, redirect_to, statement_of, touches


@step
class Stage(Step[Func]):
    """Copy the part of `buffer` that an iteration of `loop` uses to registers, work there, and copy it back.

    before:  for j: { t[n, j] = 0; for k: t[n, j] += x[k] * w[j, k] }
    after:   for j: { t_stage = 0; for k: t_stage += x[k] * w[j, k]; t[n, j] = t_stage }
    legal:   every iteration uses one part of constant shape: per dimension, a constant number of elements from a
             common start. What the body overwrites first is not copied in, what it only reads is not copied back.
             The loop is not vectorized and holds no parallel loop: threads do not see each other's registers.
    """

    buffer: str
    loop: str

    def apply(self, f: Func) -> Func:
        """`f` with the buffer staged."""
        loop = find_loop(f, self.loop, self)
        buffer = next((b for b in f.buffers if b.name == self.buffer), None)
        if buffer is None or loop.kind is LoopKind.VECTORIZED:
            refuse(self, "name a buffer of the function, and a loop that is not vectorized.", f, self.loop)
        if any(isinstance(n, For) and n.kind is LoopKind.PARALLEL for s in loop.body for n in walk(s)):
            refuse(self, f"{self.loop!r} holds a parallel loop; threads do not share registers.", f, self.loop)
        found = touches(loop.body, self.buffer)
        if not found:
            refuse(self, f"{self.loop!r} does not use {self.buffer!r}.", f, self.loop)
        if buffer.dtype in NARROW and any(t.writes for t in found):
            refuse(self, f"{self.buffer!r} rounds what it holds to {buffer.dtype}.", f, self.loop)
        part = part_of(buffer, loop.body, found)
        if isinstance(part, str):
            refuse(self, f"{part}.", f, self.loop)
        names = Names(f)
        local = Buffer(names.fresh(f"{self.buffer}_stage"), value_type(buffer.dtype), part.shape, Scope.REGISTER)
        inside = redirect_to(loop.body, self.buffer, local.name, part)
        before: Block = () if _overwritten(loop.body, self.buffer, part) else _copy(names, part, local, buffer, True)
        after: Block = _copy(names, part, local, buffer, False) if any(t.writes for t in found) else ()
        new = replace(loop, body=(*before, *inside, *after))
        return replace(replace_loop(f, self.loop, (new,)), buffers=(*f.buffers, local))


def _copy(names: Names, part: Part, local: Buffer, buffer: Buffer, inward: bool) -> Block:
    """Loops that copy a part to its local buffer, or back."""
    place: tuple[Expr, ...] = tuple(Var(names.fresh(f"{buffer.name}_c{axis}")) for axis in range(len(part.shape)))
    outer, dtype = part.outer(place), value_type(buffer.dtype)
    body: Block = (
        (Store(local.name, place, Load(buffer.name, outer, dtype)),)
        if inward
        else (Store(buffer.name, outer, Load(local.name, place, dtype)),)
    )
    for v, extent in zip(reversed(place), reversed(part.shape), strict=True):
        assert isinstance(v, Var)
        body = (For(v.name, Int(0), extent, body),)
    return body


def _overwritten(body: Block, buffer: str, part: Part) -> bool:
    """Does the body store to every element of the part before it does anything else with that element?"""
    first: Stmt | None = statement_of(body, buffer)
    ranges: dict[str, int] = {}
    nest = first
    while isinstance(first, For):
        if not (first.lo == Int(0) and isinstance(first.hi, Int)):
            return False
        ranges[first.var] = first.hi.value
        first = statement_of(first.body, buffer)
    if not isinstance(first, Store) or first.buffer != buffer or nest is None:
        return False
    indices = {t.index for t in touches((nest,), buffer)}
    place = part.local(first.index)
    wanted = [
        (v.name, e.value) for v, e in zip(place, part.shape, strict=True) if isinstance(v, Var) and isinstance(e, Int)
    ]
    return (
        indices == {first.index}
        and not any(not t.writes for t in touches((first,), buffer))
        and len(wanted) == len(place)
        and len({name for name, _ in wanted}) == len(wanted)
        and all(ranges.get(name) == extent for name, extent in wanted)
    )
