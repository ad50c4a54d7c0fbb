"""One loop nest per let: rows, then one loop per axis of the result, then the loops of a reduction.

    i = sigmoid(t)         for n: for j: inner_i[n, j] = sigmoid(inner_t[n, j])
    t = U @ s              for n: for j: inner_t[n, j] = 0; for k: inner_t[n, j] += U[j, k] * inner_s[n, k]
    s = sum(h[each k])     for n: for j: inner_s[n, j] = 0; for e in ptr(n)..ptr(n+1): inner_s[n, j] += h[child(e), j]

Temporaries are explicit and indexed by node (or edge); fusing nests and dropping temporaries is the schedule's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal

from cortex.errors import InternalError
from cortex.ilir.ir import Accumulate, For, If, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Select, Var
from cortex.ir.simplify import add
from cortex.lower.places import EdgesOfGroup, Place
from cortex.lower.read import Reader, arity
from cortex.ra import ir as ra

START: dict[str, float] = {"add": 0.0, "max": -inf, "min": inf}


@dataclass(frozen=True)
class NestBuilder:
    """Builds the nests of one kind. `joins` maps a product to the product whose sum it adds to."""

    prefix: str
    lets: Mapping[str, ra.Let]
    buffers: Mapping[str, str]
    joins: Mapping[str, str]

    def let(self, let: ra.Let, place: Place) -> tuple[Stmt, ...]:
        """The nests that compute a stored let at every row of `place`."""
        read = Reader(self.lets, self.buffers, place)
        buffer = self.buffers[let.name]
        loops = Loops(f"{self.prefix}{let.name}", place)
        target = (place.node(loops.row) if let.over is None else loops.row, *loops.axes(let.type.shape))
        match let.op:
            case ra.Unary() | ra.Binary() | ra.Where() | ra.Cast():
                value = read.pointwise(let, target[1:], loops.row)
                return loops.around(let.type.shape, (Store(buffer, target, value),))
            case ra.Contract(spec, x, y):
                return self.contract(let, spec, (x, y), read, loops, target)
            case ra.Reduce(fn, x, axes):
                shape = self.lets[x].type.shape
                kept = iter(target[1:])
                sums = iter(loops.sums(len(axes)))
                index = tuple(next(sums) if axis in axes else next(kept) for axis in range(len(shape)))
                extents = tuple(shape[axis] for axis in axes)
                value = read(x, index, loops.row)
                return loops.around(
                    let.type.shape, self.reduction(buffer, target, fn, value, loops.over(extents), start=START[fn])
                )
            case ra.OverChildren(fn, x, relation):
                return self.over_children(let, fn, x, relation, loops, target, place)
            case ra.Concat(xs, axis):
                return self.concat(let, xs, axis, read, place)
            case _:
                raise InternalError(f"let {let.name}: {type(let.op).__name__} is a view and has no nest")

    def result(self, state: str, let: ra.Let, place: Place, path: tuple[ra.Hop, ...] = ()) -> tuple[Stmt, ...]:
        """The nest that copies a result into its state buffer, at the node that `path` leads to."""
        loops = Loops("_".join([f"{self.prefix}{state}", *(_word(hop) for hop in path)]), place)
        index = loops.axes(let.type.shape)
        read = Reader(self.lets, self.buffers, place)
        value = read(let.name, index, loops.row)
        return loops.around(let.type.shape, (Store(state, (read.reach(path, loops.row), *index), value),))

    def contract(
        self, let: ra.Let, spec: str, operands: tuple[str, str], read: Reader, loops: Loops, target: tuple[Expr, ...]
    ) -> tuple[Stmt, ...]:
        """A sum of products; an outer product, which sums nothing, is pointwise."""
        terms, output = spec.split("->")
        letters = dict(zip(output, target[1:], strict=True))
        extents: dict[str, int] = {}
        for term, operand in zip(terms.split(","), operands, strict=True):
            extents |= zip(term, self.lets[operand].type.shape, strict=True)
        summed = [letter for letter in dict.fromkeys(terms.replace(",", "")) if letter not in output]
        letters |= zip(summed, loops.sums(len(summed)), strict=True)
        x, y = (
            read(operand, tuple(letters[c] for c in term), loops.row)
            for term, operand in zip(terms.split(","), operands, strict=True)
        )
        value = Binary("mul", x, y)
        buffer = self.buffers[let.name]
        if not summed:
            return loops.around(let.type.shape, (Store(buffer, target, value),))
        start = None if let.name in self.joins else 0.0
        ranges = loops.over(tuple(extents[c] for c in summed))
        return loops.around(let.type.shape, self.reduction(buffer, target, "add", value, ranges, start=start))

    def over_children(
        self,
        let: ra.Let,
        fn: Literal["add", "max", "min"],
        x: str,
        relation: str,
        loops: Loops,
        target: tuple[Expr, ...],
        place: Place,
    ) -> tuple[Stmt, ...]:
        """A reduction over the edges of each node; 0 where there are none."""
        edge = Var(f"{loops.name}_e")
        node = place.node(loops.row)
        value = Reader(self.lets, self.buffers, EdgesOfGroup(relation))(x, target[1:], edge)
        ptr = f"{relation}_ptr"

        def over(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return (For(edge.name, Index(ptr, (node,)), Index(ptr, (add(node, 1),)), body),)

        buffer = self.buffers[let.name]
        body = self.reduction(buffer, target, fn, value, over, start=START[fn])
        if fn != "add":
            some = Binary("gt", arity(relation, node), Int(0))
            body += (Store(buffer, target, Select(some, Load(buffer, target), Float(0.0))),)
        return loops.around(let.type.shape, body)

    def reduction(
        self,
        buffer: str,
        target: tuple[Expr, ...],
        fn: Literal["add", "max", "min"],
        value: Expr,
        over: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]],
        start: float | None,
    ) -> tuple[Stmt, ...]:
        """One element: its start value, unless another reduction has begun it, then the loops."""
        first = () if start is None else (Store(buffer, target, Float(start)),)
        return (*first, *over((Accumulate(buffer, target, fn, value),)))

    def concat(self, let: ra.Let, xs: tuple[str, ...], axis: int, read: Reader, place: Place) -> tuple[Stmt, ...]:
        """One nest per part, each storing behind the part before it."""
        nests: list[Stmt] = []
        offset = 0
        for number, x in enumerate(xs):
            shape = self.lets[x].type.shape
            loops = Loops(f"{self.prefix}{let.name}__{number}", place)
            index = loops.axes(shape)
            moved = tuple(add(i, offset) if a == axis else i for a, i in enumerate(index))
            at = place.node(loops.row) if let.over is None else loops.row
            nests += loops.around(shape, (Store(self.buffers[let.name], (at, *moved), read(x, index, loops.row)),))
            offset += shape[axis]
        return tuple(nests)


def _word(hop: ra.Hop) -> str:
    return f"{hop.name}_{hop.index}" if isinstance(hop, ra.Item) else hop.name


class Loops:
    """The names of the loops of one nest, and the nest itself."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.place = place
        self.row = Var(f"{name}_{place.letter}")

    def axes(self, shape: tuple[int, ...]) -> tuple[Expr, ...]:
        """One variable per axis of the result; an axis of extent 1 has no loop."""
        return tuple(Int(0) if extent == 1 else Var(f"{self.name}_j{a}") for a, extent in enumerate(shape))

    def sums(self, count: int) -> tuple[Expr, ...]:
        """One variable per summed axis."""
        return tuple(Var(f"{self.name}_k{a}") for a in range(count))

    def around(self, shape: tuple[int, ...], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """`body` inside the loops over rows and result axes; nothing at all for an empty result."""
        for a, extent in reversed(list(enumerate(shape))):
            if extent != 1:
                body = (For(f"{self.name}_j{a}", Int(0), Int(extent), body),)
        lo, hi = self.place.bounds()
        asked = self.place.asked(self.row)
        if asked is not None:
            body = (If(asked, body),)
        return (For(self.row.name, lo, hi, body),) if 0 not in shape else ()

    def over(self, extents: tuple[int, ...]) -> Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]:
        """Wraps a statement list into the loops over summed axes."""

        def wrap(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            for a, extent in reversed(list(enumerate(extents))):
                body = (For(f"{self.name}_k{a}", Int(0), Int(extent), body),)
            return body

        return wrap
