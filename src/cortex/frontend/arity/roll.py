"""Rolling a trace up: from one copy per child to one expression for every child.

before:  a = children[0].h; b = children[1].h; ta = tanh(a); tb = tanh(b); s = ta + tb        (a trace for 2 children)
after:   h_k = children[k].h; t_k = tanh(h_k); s = sum over children of t_k

The rolled graph computes what the trace computes for that number of children; whether it does for any other is for
`pattern` to find. Every step is an identity of real arithmetic: sums are taken in the order of the children, stacks
are taken apart into their parts, 0 + x is x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from cortex.frontend.arity.fold import settle
from cortex.frontend.arity.stack import through_stack
from cortex.frontend.arity.unit_axes import drop_unit_axes
from cortex.frontend.arity.values import Child, Fold, FoldFn, NotAlike, Part, Stack, Value, Whole
from cortex.ra import ir
from cortex.ra.rules import FILLS_AND_VIEWS
from cortex.ra.rules.fold_constants import begin_sums
from cortex.ra.rules.graph import Graph
from cortex.ra.rules.merge_views import drop_identities, normalize_slices
from cortex.ra.rules.over_children import count_invariants
from cortex.ra.rules.sink_slices import slice_of_op
from cortex.ra.shapes import Declared, broadcast, operand_names, rename_operands

Ends: TypeAlias = "Mapping[Child, str]"
"""Items of relations, and the slots that lead to them."""
NO_ENDS: Ends = {}

FOLDS: dict[str, FoldFn] = {"add": "add", "sub": "add", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Rolled:
    """A graph with per-edge lets, and the names of its results."""

    graph: Graph
    results: tuple[str, ...]


def roll(
    lets: tuple[ir.Let, ...],
    results: tuple[str, ...],
    lengths: Mapping[str, int],
    declared: Declared,
    unstack_all: bool = False,
    ends: Ends = NO_ENDS,
) -> Rolled:
    """Roll up the items of the list relations in `lengths`, each of at least 2; `NotAlike` where that cannot be.

    With `unstack_all`, every concatenation is taken apart, even one of values of less than two children. `ends` are
    items of relations that the node has slots to.
    """
    rolling = Rolling(lengths, declared, unstack_all, ends)
    known: dict[str, Value | NotAlike] = {}
    for let in lets:
        rolling.let = let
        try:
            known[let.name] = rolling.value(let.op, known)
        except NotAlike as reason:
            known[let.name] = NotAlike(reason.reason, reason.span or let.span)
    names = []
    for result in results:
        value = rolling.at_end(rolling.named(rolling.settled(_alike(known[result]))))
        if isinstance(value, Part):
            raise NotAlike(f"a state is made from {_child(value)} alone")
        names.append(value.name)
    return Rolled(rolling.graph, tuple(names))


class Rolling:
    """The rolled graph under construction."""

    def __init__(self, lengths: Mapping[str, int], declared: Declared, unstack_all: bool, ends: Ends = NO_ENDS) -> None:
        self.lengths = lengths
        self.ends = ends
        self.unstack_all = unstack_all
        self.graph = Graph(declared, RULES, {}, {}, frozenset())
        self.let: ir.Let = NOWHERE
        self._settled: dict[Fold, Whole | Part] = {}

    def value(self, op: ir.Op, known: Mapping[str, Value | NotAlike]) -> Value:
        """The value of a let of the trace."""
        match op:
            case ir.Field(_, (ir.Item(relation, index), *rest)) | ir.State(_, (ir.Item(relation, index), *rest)) if (
                relation in self.lengths
            ):
                if rest:
                    raise NotAlike(f"it looks below child {index} of '{relation}'")
                return Part(self.emit(replace(op, path=(ir.Each(relation),))), (relation, index))
            case ir.Field(_, (ir.Each(relation), *_)) | ir.State(_, (ir.Each(relation), *_)):
                return Part(self.emit(op), (relation, None))
            case ir.OverChildren(_, x):
                return Whole(self.emit(rename_operands(op, {x: self.named(self.settled(_alike(known[x]))).name})))
            case _:
                return self.apply(op, {x: _alike(known[x]) for x in operand_names(op)})

    def apply(self, op: ir.Op, operands: Mapping[str, Value]) -> Value:
        """The value of an op on these operands."""
        if isinstance(op, ir.Binary) and op.fn in FOLDS:
            folded = self._folded(op, operands[op.x], operands[op.y])
            if folded is not None:
                return folded
        settled = {x: self.settled(v) for x, v in operands.items()}
        if any(isinstance(v, Stack) for v in settled.values()):
            return through_stack(self, op, settled)
        named = {x: self.named(v) for x, v in settled.items()}
        parts = {v.child: v for v in named.values() if isinstance(v, Part)}
        if len(parts) > 1 and self.ends:
            apart = self._ends_apart(named)
            left = {v.child: v for v in apart.values() if isinstance(v, Part)}
            if len(left) < 2:
                named, parts = apart, left
        if isinstance(op, ir.Concat) and (len(parts) > 1 or (self.unstack_all and len(op.xs) > 1)):
            each = tuple(settled[x] for x in op.xs)
            return Stack(op.axis, each, tuple(self.shape(v)[op.axis] for v in each))
        if len(parts) > 1:
            first, second = list(parts.values())[:2]
            raise NotAlike(f"{_child(first)} and {_child(second)} are combined by {_what(op)}")
        name = self.emit(rename_operands(op, {x: v.name for x, v in named.items()}))
        return self.taken(name, next(iter(parts.values()), None))

    def _ends_apart(self, named: Mapping[str, Whole | Part]) -> dict[str, Whole | Part]:
        """The operands of an op, of which those at ends are values of the node, unless all are at the same one."""
        return {x: self.at_end(v) for x, v in named.items()}

    def at_end(self, value: Whole | Part) -> Whole | Part:
        """`value`, which is one of the node where it is of an item that the node has a slot to."""
        if not isinstance(value, Part) or value.child not in self.ends:
            return value
        relation, slot = value.child[0], ir.Slot(self.ends[value.child])
        made: dict[str, str] = {}

        def at(name: str) -> str:
            if self.graph.over(name) != relation:
                return name
            if name not in made:
                op = self.graph.op(name)
                if isinstance(op, ir.Field | ir.State):
                    made[name] = self.emit(replace(op, path=(slot, *op.path[1:])))
                else:
                    made[name] = self.emit(rename_operands(op, {x: at(x) for x in operand_names(op)}))
            return made[name]

        return Whole(at(value.name))

    def emit(self, op: ir.Op) -> str:
        """The name of the value of `op` in the rolled graph."""
        return self.graph.define(self.let, op)

    def taken(self, name: str, at: Whole | Part | None) -> Whole | Part:
        """`name`, at the child that `at` is at if it depends on the child."""
        return Part(name, at.child) if isinstance(at, Part) and self.graph.over(name) is not None else Whole(name)

    def settled(self, value: Value) -> Whole | Part | Stack:
        """`value`, where a fold is complete."""
        if not isinstance(value, Fold):
            return value
        if value not in self._settled:
            self._settled[value] = settle(self, value)
        return self._settled[value]

    def shape(self, value: Value) -> tuple[int, ...]:
        """The shape of a value."""
        match value:
            case Fold(_, terms):
                shape: tuple[int, ...] = ()
                for term in terms:
                    shape = broadcast(self.let.op, shape, self.shape(term))
                return shape
            case Stack(axis, parts, extents):
                one = self.shape(parts[0])
                return (*one[:axis], sum(extents), *one[axis + 1 :])
            case _:
                return self.graph.shape(value.name)

    def _folded(self, op: ir.Binary, x: Value, y: Value) -> Fold | None:
        """Two values as one fold, if they are of several children or one of them is such a fold already."""
        fn = FOLDS[op.fn]
        if isinstance(x, Stack) or isinstance(y, Stack):
            return None
        if not any(isinstance(v, Fold) and v.fn == fn for v in (x, y)):
            x, y = self.named(self.settled(x)), self.named(self.settled(y))
            if not (isinstance(x, Part) and isinstance(y, Part) and x.child != y.child):
                return None
        added = self._terms(fn, y)
        if op.fn == "sub":
            added = tuple(
                self.taken(self.emit(ir.Unary("neg", t.name)), t if isinstance(t, Part) else None) for t in added
            )
        return Fold(fn, (*self._terms(fn, x), *added))

    def _terms(self, fn: FoldFn, value: Value) -> tuple[Whole | Part, ...]:
        if isinstance(value, Fold) and value.fn == fn:
            return value.terms
        return (self.named(self.settled(value)),)

    def named(self, value: Whole | Part | Stack) -> Whole | Part:
        """`value`, where a stack of what is no child's own (the maxima of two states) is put together again."""
        if not isinstance(value, Stack):
            return value
        parts = [self.named(self.settled(part)) for part in value.parts]
        if any(isinstance(part, Part) for part in parts):
            raise NotAlike("a stack of children's values is used in a way that mixes them")
        return Whole(self.emit(ir.Concat(tuple(part.name for part in parts), value.axis)))


NOWHERE = ir.Let("t", ir.Fill(0.0, ()), ir.TensorType(()))
"""What is being rolled before the first let."""


def _slices_sink(g: Graph, op: ir.Op) -> ir.Op | None:
    """A slice of what the node computes for all children at once is computed for that slice."""
    return slice_of_op(g, op) if isinstance(op, ir.Slice) else None


RULES = (
    count_invariants,
    normalize_slices,
    drop_identities,
    drop_unit_axes,
    begin_sums,
    *FILLS_AND_VIEWS,
    _slices_sink,
)
"""Only what brings the values of different children to one form: the rest of simplification comes later."""


def _alike(value: Value | NotAlike) -> Value:
    if isinstance(value, NotAlike):
        raise value
    return value


def _child(part: Part) -> str:
    relation, index = part.child
    return f"each child in '{relation}'" if index is None else f"child {index} of '{relation}'"


def _what(op: ir.Op) -> str:
    match op:
        case ir.Binary(fn):
            return f"'{fn}'"
        case ir.Contract():
            return "a matrix product"
        case _:
            return f"a {type(op).__name__}"
