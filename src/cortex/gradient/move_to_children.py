"""Work of an edge that only its child takes part in, as a state of the child.

before:  for k in children: f = sigmoid(Uf @ k.h + bf) * k.c;  c = ... + sum(f over children)
after:   every node has a state f = sigmoid(Uf @ h + bf) * c;  c = ... + sum(k.f over children)

A node is computed once however many parents it has, and its parameters' gradients are sums over nodes.
"""

from __future__ import annotations

from dataclasses import replace

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands

_SAFE = frozenset({"add", "sub", "mul", "min", "max", "neg", "tanh", "sigmoid", "abs"})
"""Functions whose values and derivatives are finite, so that nodes which are nobody's child do no harm."""

Expression = tuple[ir.Op, ...]
"""Ops in order, operands being numbers of earlier ones; states and fields are the child's, with no path."""


def move_to_children(m: ir.Model) -> ir.Model:
    """`m` with such work moved."""
    states: dict[Expression, ir.StateDecl] = {}
    taken = {s.name for s in m.states}
    kinds = [_reading_states(kind, states, taken) for kind in m.kinds]
    if not states:
        return m
    declared = Declared.of(replace(m, states=(*m.states, *states.values())))
    names = [s.name for s in m.states]
    finished = []
    for kind in kinds:
        b = Builder(declared)
        for let in kind.lets:
            b.add(let.op, let.name, let.span)
        own = dict(zip(names, kind.results, strict=True))
        results = tuple(_evaluated(expression, own, b) for expression in states)
        finished.append(replace(kind, lets=b.lets, results=(*kind.results, *results)))
    return replace(m, states=(*m.states, *states.values()), kinds=tuple(finished))


def _reading_states(kind: ir.Kind, states: dict[Expression, ir.StateDecl], taken: set[str]) -> ir.Kind:
    """`kind` with its work of children replaced by reading states, which are added where they are new."""
    lets = {let.name: let for let in kind.lets}
    constant = constants(kind)
    movable: set[str] = set()
    weighted: set[str] = {let.name for let in kind.lets if let.name in constant and not _is_number(let, lets)}
    for let in kind.lets:
        if let.over is not None and _can_move(let, movable, constant):
            movable.add(let.name)
            if any(x in weighted for x in operand_names(let.op)):
                weighted.add(let.name)
    read_elsewhere = {x for let in kind.lets if let.name not in movable for x in operand_names(let.op)}
    new: list[ir.Let] = []
    for let in kind.lets:
        if let.name in movable & weighted & read_elsewhere and let.over is not None:
            expression = _expression(let.name, lets)
            if expression not in states:
                number = len(states)
                while f"moved_{number}" in taken:
                    number += 1
                taken.add(f"moved_{number}")
                states[expression] = ir.StateDecl(f"moved_{number}", let.type)
            let = replace(let, op=ir.State(states[expression].name, (ir.Each(let.over),)))
        new.append(let)
    return replace(kind, lets=tuple(new))


def constants(kind: ir.Kind) -> frozenset[str]:
    """The lets that depend on parameters only."""
    found: set[str] = set()
    for let in kind.lets:
        reads_nodes = isinstance(let.op, ir.Field | ir.State | ir.Arity | ir.OverChildren)
        if not reads_nodes and let.over is None and all(x in found for x in operand_names(let.op)):
            found.add(let.name)
    return frozenset(found)


def _is_number(let: ir.Let, lets: dict[str, ir.Let]) -> bool:
    """Is the constant made of numbers alone, without parameters?"""
    if isinstance(let.op, ir.Param):
        return False
    return all(_is_number(lets[x], lets) for x in operand_names(let.op))


def _can_move(let: ir.Let, movable: set[str], constant: frozenset[str]) -> bool:
    match let.op:
        case ir.State(_, path) | ir.Field(_, path):
            return len(path) == 1
        case ir.Unary(fn) | ir.Binary(fn) if fn not in _SAFE:
            return False
        case ir.Contract() | ir.Unary() | ir.Binary() | ir.Concat() | ir.Slice() | ir.Reshape() | ir.Transpose():
            pass
        case ir.Broadcast():
            pass
        case _:
            return False
    return let.type.dtype == "f32" and all(x in movable or x in constant for x in operand_names(let.op))


def _expression(name: str, lets: dict[str, ir.Let]) -> Expression:
    ops: list[ir.Op] = []
    numbers: dict[str, str] = {}

    def visit(each: str) -> None:
        if each in numbers:
            return
        op = lets[each].op
        for x in operand_names(op):
            visit(x)
        match op:
            case ir.State(state):
                op = ir.State(state, ())
            case ir.Field(field):
                op = ir.Field(field)
        numbers[each] = str(len(ops))
        ops.append(rename_operands(op, numbers))

    visit(name)
    return tuple(ops)


def _evaluated(expression: Expression, own: dict[str, str], b: Builder) -> str:
    """The let of the last op of `expression` at the node itself, whose states are the lets `own`."""
    names: dict[str, str] = {}
    for number, op in enumerate(expression):
        match op:
            case ir.State(state):
                names[str(number)] = own[state]
            case _:
                names[str(number)] = b.add(rename_operands(op, names))
    return names[str(len(expression) - 1)]
