"""What depends on no node is computed once, when the weights are loaded."""

from __future__ import annotations

from dataclasses import replace

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.rules.graph import VIEWS
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets
from cortex.recursion.refuse import refuse_unrolled


@step
class Hoist(Step[ir.Model]):
    """Turn lets that read only parameters into derived parameters.

    before:  t = b + c; h = tanh(U @ s + t)
    after:   derived_0 = b + c                        once, at load time
             h = tanh(U @ s + derived_0)

    A view of a matrix, or of more, stays a view and a constant stays a constant. What is not f32 is no parameter of its
    own: it is computed with what is made of it, at load time or where a node needs it. A slice of a vector (a gate's
    part of a bias) is hoisted, so that it starts on a vector boundary and has padding of its own. Equal expressions, in
    one kind or in several, share one derived parameter.
    """

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with such lets replaced by parameters, which `Model.derived` defines."""
        refuse_unrolled(self, program)
        declared = Declared.of(program)
        found = _Found(program)
        kinds = tuple(_hoist_kind(kind, declared, found) for kind in program.kinds)
        tables = tuple(replace(t, kind=_hoist_kind(t.kind, declared, found)) for t in program.tables)
        if not found.derived:
            return program
        return replace(
            program,
            params=(*program.params, *found.params),
            kinds=kinds,
            tables=tables,
            derived=(*program.derived, *found.derived),
        )


class _Found:
    """The derived parameters so far, each known by the lets that compute it."""

    def __init__(self, m: ir.Model) -> None:
        self.taken = {p.name for p in m.params}
        self.params: list[ir.ParamDecl] = []
        self.derived: list[ir.Derived] = []
        self._names: dict[tuple[ir.Op, ...], str] = {}

    def name(self, lets: tuple[ir.Let, ...]) -> str:
        """The derived parameter that is the last of `lets`."""
        key = tuple(let.op for let in lets)
        if key not in self._names:
            number = len(self._names)
            while f"derived_{number}" in self.taken:
                number += 1
            name = f"derived_{number}"
            self.taken.add(name)
            self._names[key] = name
            self.params.append(ir.ParamDecl(name, lets[-1].type))
            self.derived.append(ir.Derived(name, lets, lets[-1].name))
        return self._names[key]


def _hoist_kind(kind: ir.Kind, declared: Declared, found: _Found) -> ir.Kind:
    constant: set[str] = set()  # lets that read only parameters
    for let in kind.lets:
        reads_node = isinstance(let.op, ir.Field | ir.State | ir.Arity | ir.OverChildren)
        if not reads_node and all(x in constant for x in operand_names(let.op)):
            constant.add(let.name)
    by_name = {let.name: let for let in kind.lets}
    read = set(kind.results)
    hoisted: set[str] = set()
    for let in reversed(kind.lets):
        if let.name not in read:
            continue
        if let.name in constant and let.type.dtype == "f32" and not _is_view(let, by_name):
            hoisted.add(let.name)
        else:
            read.update(operand_names(let.op))
    lets = []
    for let in kind.lets:
        if let.name in hoisted:
            name = found.name(_canonical(drop_dead_lets(kind.lets, (let.name,)), declared))
            let = replace(let, op=ir.Param(name), over=None)
        lets.append(let)
    return replace(kind, lets=drop_dead_lets(tuple(lets), kind.results))


def _is_view(let: ir.Let, by_name: dict[str, ir.Let]) -> bool:
    """Is `let` a parameter, a constant, or a chain of views of one, other than a slice of a vector?"""
    op = let.op
    while isinstance(op, VIEWS):
        if isinstance(op, ir.Slice) and len(op.ranges) == 1:
            return False
        op = by_name[op.x].op
    return isinstance(op, ir.Param | ir.Fill)


def _canonical(lets: tuple[ir.Let, ...], declared: Declared) -> tuple[ir.Let, ...]:
    """`lets` under names that depend on their order only, so that equal expressions have equal lets."""
    b = Builder(declared)
    names: dict[str, str] = {}
    for let in lets:
        names[let.name] = b.add(rename_operands(let.op, names), span=let.span)
    return b.lets
