"""The graph that simplification rebuilds: every value is defined once, in its simplest known form.

A rule looks at one op, whose operands are defined already, and answers with an op of the same value (which is
looked at again), the name of a let of the same value, or None when it has nothing to say. It may define further
lets with `emit` on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from cortex.ir.source import Span
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names

Rule: TypeAlias = "Callable[[Graph, ir.Op], ir.Op | str | None]"
Uses: TypeAlias = "Mapping[str, tuple[ir.Op | None, ...]]"
Range: TypeAlias = "tuple[int, int, int]"

VIEWS = (ir.Slice, ir.Reshape, ir.Transpose, ir.Broadcast)


class Graph:
    """Lets under construction, hash-consed.

    `rules` are tried in order on each op. `uses` are those of the graph being rebuilt, by name, with None for
    "is a result"; a let that is new has no known uses, so rules that need to know them wait for the next round.
    `lengths` holds the list relations whose length the guard tells, `not_empty` those of which it tells that there are
    children in them.
    """

    def __init__(
        self,
        declared: Declared,
        rules: tuple[Rule, ...],
        lengths: Mapping[str, int],
        uses: Uses,
        reserved: frozenset[str],
        not_empty: frozenset[str] = frozenset(),
    ) -> None:
        """An empty graph; names that are made up stay clear of `reserved`."""
        self.builder = Builder(declared, reserved)
        self.rules = rules
        self.lengths = lengths
        self.not_empty = not_empty
        self.uses = uses
        self.constants: set[str] = set()
        self.disjoint: dict[str, bool] = {}
        self._known: dict[ir.Op, str] = {}
        self._stem = "t"
        self._span: Span | None = None

    def define(self, let: ir.Let, op: ir.Op) -> str:
        """The name of the value of `op`, to which `let` gives its name and place if the value is new."""
        self._stem, self._span = f"{let.name}_", let.span
        return self.emit(op, let.name)

    def emit(self, op: ir.Op, name: str | None = None) -> str:
        """The name of a let whose value is that of `op`."""
        seen = []
        result: str | None = None
        while result is None and (result := self._known.get(op)) is None:
            seen.append(op)
            simpler = self._simplest(op)
            if isinstance(simpler, str):
                result = simpler
            elif simpler is None:
                result = self._add(op, name)
            else:
                op = simpler
        for other in seen:
            self._known[other] = result
        return result

    def op(self, name: str) -> ir.Op:
        """How `name` is computed."""
        return self.builder[name].op

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of `name`."""
        return self.builder.types[name].shape

    def type(self, name: str) -> ir.TensorType:
        """The type of `name`."""
        return self.builder.types[name]

    def over(self, name: str) -> str | None:
        """The list relation over whose edges `name` ranges, if any."""
        return self.builder.overs[name]

    def fill(self, name: str) -> float | None:
        """The number that `name` is everywhere, if it is a `Fill`."""
        op = self.op(name)
        return op.value if isinstance(op, ir.Fill) else None

    def used_once(self, name: str) -> bool:
        """Is `name` known to be read by one op only, and to be no result?"""
        uses = self.uses.get(name, ())
        return len(uses) == 1 and uses[0] is not None

    def reads(self, name: str, params: Collection[str]) -> bool:
        """Is `name` computed from one of these parameters?"""
        if not params:
            return False
        op = self.op(name)
        return (isinstance(op, ir.Param) and op.name in params) or any(self.reads(x, params) for x in operand_names(op))

    def full(self, value: float, t: ir.TensorType) -> str:
        """A constant tensor of any element type."""
        filled = self.emit(ir.Fill(value, t.shape))
        return filled if t.dtype == "f32" else self.emit(ir.Cast(filled, t.dtype))

    def spread(self, name: str, shape: tuple[int, ...]) -> str:
        """`name` broadcast to `shape`."""
        return name if self.shape(name) == shape else self.emit(ir.Broadcast(name, shape))

    def slice(self, name: str, ranges: tuple[Range, ...]) -> str:
        """A slice of `name`."""
        return self.emit(ir.Slice(name, ranges))

    def _simplest(self, op: ir.Op) -> ir.Op | str | None:
        for rule in self.rules:
            simpler = rule(self, op)
            if simpler is not None:
                return simpler
        return None

    def _add(self, op: ir.Op, name: str | None) -> str:
        if name is None or name in self.builder:
            name = self.builder.fresh(self._stem)
        self.builder.add(op, name, self._span)
        reads_node = isinstance(op, ir.Field | ir.State | ir.Arity | ir.OverChildren)
        if not reads_node and all(x in self.constants for x in operand_names(op)):
            self.constants.add(name)
        return name


def full_range(n: int) -> Range:
    """The range of a whole axis."""
    return (0, n, 1)


def uses_of(kind: ir.Kind) -> dict[str, tuple[ir.Op | None, ...]]:
    """The ops that read each let of `kind`; None stands for being a result."""
    uses: dict[str, list[ir.Op | None]] = {let.name: [] for let in kind.lets}
    for let in kind.lets:
        for x in dict.fromkeys(operand_names(let.op)):
            uses[x].append(let.op)
    for result in kind.results:
        uses[result].append(None)
    return {name: tuple(ops) for name, ops in uses.items()}
