"""Which part of a buffer one iteration of a loop uses.

Per dimension, the accesses inside the loop's body have a common start that stays the same during an iteration, and
run a constant distance from there; or, if their starts differ, the dimension is taken whole.

    for j_o: for j_i in 0..16: t[n, j_o*16 + j_i] = ...        of t, j_o uses row n, columns j_o*16 and 16 on
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cortex.ilir.ir import Accumulate, Buffer, For, If, Let, Stmt, Store, Switch
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.polynomial import combine, expand, interval, rebuild
from cortex.ir.scalar import Expr, Int, Load, Var
from cortex.ir.simplify import add, free_vars, simplify, sub
from cortex.schedule.around import constant_bounds
from cortex.schedule.locate import Block


@dataclass(frozen=True)
class Touch:
    """An access in the text of a loop's body. `always`: every iteration of that loop makes it."""

    index: tuple[Expr, ...]
    writes: bool
    loops: tuple[For, ...]
    always: bool


@dataclass(frozen=True)
class Range:
    """`extent` elements from `first` on; extent None is one element, whose dimension the part does not have."""

    first: Expr
    extent: int | None


@dataclass(frozen=True)
class Part:
    """A range per dimension of the buffer."""

    ranges: tuple[Range, ...]

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The shape of a buffer that holds the part."""
        return tuple(Int(r.extent) for r in self.ranges if r.extent is not None)

    def local(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where the element `index` of the buffer is in the part."""
        kept = ((i, r) for i, r in zip(index, self.ranges, strict=True) if r.extent is not None)
        return tuple(simplify(sub(i, r.first)) for i, r in kept)

    def outer(self, local: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The element of the buffer that is at `local` in the part."""
        rest = iter(local)
        return tuple(r.first if r.extent is None else add(r.first, next(rest)) for r in self.ranges)


def touches(body: Block, buffer: str) -> list[Touch]:
    """All accesses of a buffer in a loop's body, in order."""
    return [t for t, name in _touches(body, (), True) if name == buffer]


def _touches(body: Block, loops: tuple[For, ...], always: bool) -> Iterator[tuple[Touch, str]]:
    for s in body:
        match s:
            case For(lo=lo, hi=hi, body=inner):
                yield from _loads((lo, hi), loops, always)
                runs = isinstance(lo, Int) and isinstance(hi, Int) and lo.value < hi.value
                yield from _touches(inner, (*loops, s), always and runs)
            case If(cond, then, orelse):
                yield from _loads((cond,), loops, always)
                yield from _touches(then, loops, False)
                yield from _touches(orelse, loops, False)
            case Switch(value, cases):
                yield from _loads((value,), loops, always)
                for case in cases:
                    yield from _touches(case.body, loops, False)
            case Let(value=value):
                yield from _loads((value,), loops, always)
            case Store(buffer, index, value) | Accumulate(buffer, index, _, value):
                yield from _loads((*index, value), loops, always)
                yield Touch(index, True, loops, always), buffer
            case _:
                pass


def _loads(es: tuple[Expr, ...], loops: tuple[For, ...], always: bool) -> Iterator[tuple[Touch, str]]:
    for n in (n for e in es for n in walk(e)):
        if isinstance(n, Load):
            yield Touch(n.index, False, loops, always), n.buffer


def part_of(buffer: Buffer, body: Block, found: list[Touch]) -> Part | str:
    """The part of `buffer` that the accesses `found` in a loop's `body` use, or why there is no such part."""
    inside = {n.var if isinstance(n, For) else n.var.name for s in body for n in walk(s) if isinstance(n, For | Let)}
    lets = {n.var.name for s in body for n in walk(s) if isinstance(n, Let)}
    ranges: list[Range] = []
    reached = [t for t in found if t.always]
    for axis, size in enumerate(buffer.shape):
        if any(free_vars(t.index[axis]) & lets for t in found):
            return f"an index of {buffer.name!r} uses a let"
        spans = [_span(t, axis, inside) for t in found]
        firsts = {first for first, _ in spans}
        ends = [end for _, end in spans]
        if len(firsts) == 1 and None not in ends:
            longest = max(end for end in ends if end is not None)
            reached = [t for t in reached if _span(t, axis, inside)[1] == longest]
            varies = any(free_vars(t.index[axis]) & inside for t in found)
            ranges.append(Range(spans[0][0], longest if varies else None))
        elif isinstance(size, Int):
            padded = -(-size.value // buffer.align) * buffer.align if axis == len(buffer.shape) - 1 else size.value
            ranges.append(Range(Int(0), padded))
        else:
            return f"an iteration uses {buffer.name!r} at several rows"
    if not reached:
        return f"{buffer.name!r} is not used at the whole of one part in every iteration"
    return Part(tuple(ranges))


def _span(t: Touch, axis: int, inside: set[str]) -> tuple[Expr, int | None]:
    """The start of an index, which does not depend on `inside`, and how many elements from there on it may reach."""
    p = expand(t.index[axis], simplify)
    fixed = {m: c for m, c in p.items() if not free_vars(m) & inside}
    varying = combine(p, fixed, -1)
    if any(len(m) != 1 or not isinstance(m[0], Var) for m in varying):
        return rebuild(fixed), None  # limits of what is not linear need not be reached
    lo, hi = interval(varying, constant_bounds(t.loops))
    return rebuild(fixed), int(hi) + 1 if lo == 0 and hi < float("inf") else None


def redirect_to(body: Block, buffer: str, name: str, part: Part) -> Block:
    """`body` with every access of `buffer` made an access of `name`, which holds the part."""

    def move(n: Node) -> Node:
        match n:
            case Load(b, index, dtype) if b == buffer:
                return Load(name, part.local(index), dtype)
            case Store(b, index, value) if b == buffer:
                return Store(name, part.local(index), value)
            case Accumulate(b, index, fn, value) if b == buffer:
                return Accumulate(name, part.local(index), fn, value)
            case _:
                return n

    return tuple(rewrite(s, move) for s in body)


def statement_of(body: Block, buffer: str) -> Stmt | None:
    """The first statement of a list that accesses a buffer."""
    return next((s for s in body if touches((s,), buffer)), None)
