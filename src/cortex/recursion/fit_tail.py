"""Fitting a tail to another kind: values that, put where one kind's values cross, give the other kind's states.

    tail   h = a + b            with a = z * s and b = (1 - z) * g crossing
    leaf   h = u * g            so a = u * g and b = 0

    tail   u = 1 - z; h = u * g
    leaf   v = 1 - y; h = v * f           so z = y and g = f

A parent does not know the kind of a child, so that all kinds must end in one tail. Where the graph of the other kind
ends in the same operators, its operands are taken; elsewhere, an operator's neutral element lets the value through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from cortex.ra import ir
from cortex.ra.shapes import operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets
from cortex.recursion.tail import Tail

Value = str | float
"""A let of the other kind, or a constant."""
Bound = Mapping[str, Value]

COMMUTES = frozenset({"add", "mul", "min", "max"})
KEEPS_ZERO = frozenset({"neg", "abs", "sqrt", "tanh"})
MAY_NOT_BE_FINITE = frozenset({"log", "sqrt", "exp", "div"})
MOST = 64


def fit(tail: Tail, kind: ir.Kind) -> dict[str, Value] | None:
    """A value of `kind` for each value that crosses, with which `tail` computes the results of `kind`; or None.

    Of several ways, the one with fewest constants is taken; of those, the one that leaves least to compute.
    """
    search = _Fit(*({let.name: let for let in lets} for lets in (tail.lets, tail.crossing, kind.lets)))
    ways = list(islice(search.all(tuple(zip(tail.kind.results, kind.results, strict=True)), {}), MOST))
    if not ways:
        return None

    def cost(way: Bound) -> tuple[int, int]:
        computed = tuple(value for value in way.values() if isinstance(value, str))
        return len(tail.crossing) - len(computed), len(drop_dead_lets(kind.lets, computed))

    best = min(ways, key=cost)
    return {name: best.get(name, 0.0) for name in search.crossing}


@dataclass(frozen=True)
class _Fit:
    """A search, by backtracking; the lets of the tail, those that cross and those of the other kind, by name."""

    tail: Mapping[str, ir.Let]
    crossing: Mapping[str, ir.Let]
    lets: Mapping[str, ir.Let]

    def all(self, pairs: tuple[tuple[str, Value], ...], bound: Bound) -> Iterator[Bound]:
        """The ways to give each name of the tail its value."""
        if not pairs:
            yield bound
            return
        (name, value), *rest = pairs
        for way in self.one(name, value, bound):
            yield from self.all(tuple(rest), way)

    def one(self, name: str, value: Value, bound: Bound) -> Iterator[Bound]:
        """The ways to give `name` the value `value`."""
        if isinstance(value, str) and isinstance(fill := self.lets[value].op, ir.Fill):
            value = fill.value
        if name in self.crossing:
            fits = not isinstance(value, str) or self.lets[value].type == self.crossing[name].type
            if name in bound:
                fits = fits and bound[name] == value
            if fits:
                yield {**bound, name: value}
            return
        let = self.tail[name]
        if isinstance(value, str):
            for pairs in self.operands(let.op, self.lets[value].op):
                yield from self.all(pairs, bound)
        match let.op:
            case ir.Binary("add", x, y):
                yield from self.all(((x, value), (y, 0.0)), bound)
                yield from self.all(((y, value), (x, 0.0)), bound)
            case ir.Binary("mul", x, y) if value == 0.0:
                for factor, other in ((x, y), (y, x)):
                    if self.is_finite(other):
                        yield from self.one(factor, 0.0, bound)
            case ir.Binary("mul", x, y):
                yield from self.all(((x, value), (y, 1.0)), bound)
                yield from self.all(((y, value), (x, 1.0)), bound)
            case ir.Binary("sub", x, y) if isinstance(value, float) and (start := self.constant(x)) is not None:
                yield from self.one(y, start - value, bound)
            case ir.Binary("sub", x, y):
                yield from self.all(((x, value), (y, 0.0)), bound)
            case ir.Binary("div", x, y):
                yield from self.all(((x, value), (y, 1.0)), bound)
            case ir.Unary(fn, x) if value == 0.0 and fn in KEEPS_ZERO:
                yield from self.one(x, 0.0, bound)
            case ir.Fill(own) if value == own:
                yield bound
            case _:
                return

    def operands(self, op: ir.Op, other: ir.Op) -> Iterator[tuple[tuple[str, Value], ...]]:
        """The pairs of operands that must be equal for `op` of the tail to be `other` of the kind."""
        if isinstance(op, ir.Binary) and isinstance(other, ir.Binary) and op.fn == other.fn:
            yield (op.x, other.x), (op.y, other.y)
            if op.fn in COMMUTES:
                yield (op.x, other.y), (op.y, other.x)
        elif _without_operands(op) == _without_operands(other):
            yield tuple(zip(operand_names(op), operand_names(other), strict=True))

    def is_finite(self, name: str) -> bool:
        """Is the tail finite at `name` whatever finite values cross? Then 0 times it is 0."""
        if name in self.crossing:
            return True
        op = self.tail[name].op
        if isinstance(op, ir.Unary | ir.Binary) and op.fn in MAY_NOT_BE_FINITE:
            return False
        return all(self.is_finite(x) for x in operand_names(op))

    def constant(self, name: str) -> float | None:
        """The constant that the tail has at `name`, if it is one."""
        op = self.tail[name].op if name in self.tail else None
        return op.value if isinstance(op, ir.Fill) else None


def _without_operands(op: ir.Op) -> ir.Op:
    return rename_operands(op, dict.fromkeys(operand_names(op), ""))
