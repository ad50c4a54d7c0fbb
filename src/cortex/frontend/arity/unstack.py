"""Taking stacks apart, item by item: the form in which recurrences over the items of a list are looked for.

before:  x = stack(children[0].h, children[1].h); y = x @ W; h = tanh(y[0] + U @ c); ...
after:   y0 = children[0].h @ W; y1 = children[1].h @ W; h = tanh(y0 + U @ c); ...

Unlike rolling (see `roll`), every item keeps expressions of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from cortex.frontend.arity.roll import Rolling
from cortex.frontend.arity.stack import through_stack
from cortex.frontend.arity.unit_axes import drop_unit_axes_of_pointwise
from cortex.frontend.arity.values import NotAlike, Stack, Value, Whole
from cortex.ra import ir
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets


def unstacked(
    lets: tuple[ir.Let, ...], results: tuple[str, ...], count: int, declared: Declared, unstack_all: bool = False
) -> ir.Kind:
    """The same values without stacks of `count` items; with `unstack_all`, without any concatenation."""
    unstacking = _Unstacking(count, declared, unstack_all)
    known: dict[str, Value] = {}
    for let in lets:
        unstacking.let = let
        known[let.name] = unstacking.value(let.op, known)
    names = tuple(unstacking.named(unstacking.settled(known[result])).name for result in results)
    return ir.Kind("unstacked", (), drop_dead_lets(unstacking.graph.builder.lets, names), names)


class _Unstacking(Rolling):
    """The graph under construction; all its values are wholes and stacks of them."""

    def __init__(self, count: int, declared: Declared, unstack_all: bool) -> None:
        super().__init__({}, declared, unstack_all)
        self.graph.rules = (drop_unit_axes_of_pointwise, *self.graph.rules)
        self._count = count
        self._items: dict[str, frozenset[tuple[str, int]]] = {}

    def value(self, op: ir.Op, known: Mapping[str, Value | NotAlike]) -> Value:
        """The value of a let of the trace."""
        operands: dict[str, Value] = {}
        for x in operand_names(op):
            found = known[x]
            assert not isinstance(found, NotAlike)
            operands[x] = found
        return self.apply(op, operands)

    def apply(self, op: ir.Op, operands: Mapping[str, Value]) -> Value:
        """The value of an op on these operands."""
        if any(isinstance(v, Stack) for v in operands.values()):
            return through_stack(self, op, operands)
        named = {x: self.named(self.settled(v)) for x, v in operands.items()}
        if isinstance(op, ir.Concat) and len(op.xs) > 1 and (self.unstack_all or self._is_of_items(op, named)):
            each = tuple(named[x] for x in op.xs)
            return Stack(op.axis, each, tuple(self.shape(v)[op.axis] for v in each))
        return Whole(self.emit(rename_operands(op, {x: v.name for x, v in named.items()})))

    def _is_of_items(self, op: ir.Concat, named: Mapping[str, Value]) -> bool:
        """Is there one part for each item, or more?"""
        shapes = {self.shape(named[x]) for x in op.xs}
        of_items = all(self._items_of(self.named(self.settled(named[x])).name) for x in op.xs)
        return len(op.xs) >= self._count > 1 and len(shapes) == 1 and of_items

    def _items_of(self, name: str) -> frozenset[tuple[str, int]]:
        if name not in self._items:
            op = self.graph.op(name)
            found = [self._items_of(x) for x in operand_names(op)]
            if isinstance(op, ir.Field | ir.State) and op.path and isinstance(op.path[0], ir.Item):
                found.append(frozenset({(op.path[0].name, op.path[0].index)}))
            self._items[name] = frozenset().union(*found)
        return self._items[name]
