"""The backward graph of one kind, seen from its nodes: from the adjoints of its states to those of all it reads.

Values that a later stage places are fields and states with made-up names:

    Field("incoming:h")        the adjoint of the node's own state h
    Field("keep:t3")           the forward value t3 of the node, which the forward pass is to keep
    State("export:t9", ...)    the value t9 of another node's backward graph, which that is to store
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from cortex.gradient.move_to_children import constants
from cortex.gradient.refuse import refuse
from cortex.gradient.rules import contracted, masked, pull_back, share_among_ties
from cortex.gradient.tape import Tape
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands, terms

INCOMING, KEEP, EXPORT = "incoming:", "keep:", "export:"
VIEWS = (ir.Slice, ir.Reshape, ir.Transpose, ir.Broadcast)
Target = tuple[tuple[ir.Hop, ...], str]
"""The way from a node to another, and the state or field there."""


@dataclass(frozen=True)
class ProductOf:
    """The adjoint of a constant operand of a contraction: the sum over nodes of `g` times `x`, two lets."""

    constant: str
    spec: str
    g: str
    x: str


@dataclass
class KindBackward:
    """What is known of a kind, and after `run` its backward graph."""

    model: ir.Model
    kind: ir.Kind
    params: frozenset[str]
    """Parameters whose gradients are wanted."""
    fields: frozenset[str]
    """Float fields whose gradients are wanted."""
    reached: frozenset[str]
    """States that have an adjoint at some node."""
    outgoing: dict[Target, str] = field(default_factory=dict)
    """Adjoints of what is read along ways without lists, by way and name."""
    own_fields: dict[str, str] = field(default_factory=dict)
    """Adjoints of the node's own fields."""
    shares: dict[str, str] = field(default_factory=dict)
    """What each edge gets of the adjoint of a reduction over children, by the let of the reduction."""
    products: list[ProductOf] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    """Adjoints of constants, one per node, to be summed over nodes."""

    def __post_init__(self) -> None:
        self.lets = {let.name: let for let in self.kind.lets}
        self.constant = constants(self.kind)
        self.active = self._active()
        self.state_of = {result: state.name for state, result in zip(self.model.states, self.kind.results, strict=True)}
        self.builder = Builder(declared(self.model, self.kind))
        self._values: dict[str, str] = {}

    def _active(self) -> frozenset[str]:
        """The lets that have gradients."""
        found: set[str] = set()
        for let in self.kind.lets:
            match let.op:
                case ir.Param(name):
                    is_active = name in self.params
                case ir.Field(name):
                    is_active = name in self.fields
                case ir.State(name):
                    is_active = True
                case _:
                    is_active = any(x in found for x in operand_names(let.op))
            if is_active and let.type.dtype == "f32":
                found.add(let.name)
        return frozenset(found)

    def run(self) -> None:
        """Go back through the lets of the kind."""
        tape = Tape(self.builder, self.lets, self.value, lambda x: x in self.active)
        for state, result in zip(self.model.states, self.kind.results, strict=True):
            if state.name in self.reached and result in self.active:
                tape.give(result, self.builder.add(ir.Field(INCOMING + state.name)))
        for let in reversed(self.kind.lets):
            g = tape.total(let.name) if let.name in self.active else None
            if g is None:
                continue
            if let.name in self.constant:
                self.plain[let.name] = g
                continue
            match let.op:
                case ir.State(name, path) | ir.Field(name, path):
                    self._leaf(name, path, let, g)
                case ir.OverChildren(fn, x) if x in self.active:
                    share = share_among_ties(fn, x, let.name, g, tape)
                    self.shares[let.name] = share
                    tape.give(x, share if fn == "add" else masked(x, let.name, share, tape))
                case ir.Contract(spec, x, y) if let.over is None:
                    tx, ty, out = terms(spec)
                    for a, ta, b, tb in ((x, tx, y, ty), (y, ty, x, tx)):
                        if a in self.active and a in self.constant:
                            self.products.append(ProductOf(a, f"{out},{tb}->{ta}", g, b))
                        elif a in self.active:
                            tape.give(a, contracted(a, ta, b, tb, out, g, tape))
                case _:
                    pull_back(let, g, tape)

    def _leaf(self, name: str, path: tuple[ir.Hop, ...], let: ir.Let, g: str) -> None:
        if not path:
            self._add(self.own_fields, name, g)
        elif not isinstance(path[0], ir.Each):
            self._add(self.outgoing, (path, name), g)
        elif len(path) > 1:
            refuse("what a node reads of the children of its children in a list", let.span)

    def _add(self, into: dict[object, str] | dict[str, str] | dict[Target, str], key: object, g: str) -> None:
        known = into.get(key)  # type: ignore[call-overload]
        into[key] = g if known is None else self.builder.add(ir.Binary("add", known, g))  # type: ignore[index]

    def value(self, name: str) -> str:
        """The forward value of a let, at the node or at each of its edges."""
        if name not in self._values:
            self._values[name] = self._value(name)
        return self._values[name]

    def _value(self, name: str) -> str:
        let, add = self.lets[name], self.builder.add
        if name in self.state_of:
            return add(ir.Field(self.state_of[name]))
        match let.op:
            case ir.State(read, path) | ir.Field(read, path) if not any(isinstance(hop, ir.Item) for hop in path):
                return add(ir.Field(read, path))
        if is_kept(let) and name not in self.constant and not isinstance(let.op, VIEWS) and not self._is_cheap(name):
            return add(ir.Field(KEEP + name))
        if isinstance(let.op, ir.Field | ir.State | ir.Arity):
            refuse("a number that a node reads of an item of a list", let.span)
        return self._again(let)

    def _is_cheap(self, name: str) -> bool:
        """Is the value computed again from states, fields and constants, element by element?"""
        let = self.lets[name]
        if name in self.state_of or name in self.constant:
            return True
        match let.op:
            case ir.State(_, path) | ir.Field(_, path):
                return not any(isinstance(hop, ir.Item) for hop in path)
            case ir.Unary() | ir.Binary() | ir.Where() | ir.Cast():
                return all(map(self._is_cheap, operand_names(let.op)))
            case _:
                return isinstance(let.op, VIEWS) and all(map(self._is_cheap, operand_names(let.op)))

    def _again(self, let: ir.Let) -> str:
        operands = {x: self.value(x) for x in operand_names(let.op)}
        return self.builder.add(rename_operands(let.op, operands))


def is_kept(let: ir.Let) -> bool:
    """Can the forward pass keep the value as a state?"""
    return let.over is None and let.type.dtype == "f32"


def declared(m: ir.Model, kind: ir.Kind, lists: Collection[str] = (), stored: Collection[ir.Let] = ()) -> Declared:
    """What backward graphs of a kind may read: parameters, fields, states as fields, and values to be placed."""
    states = {s.name: s.type for s in m.states}
    fields = {f.name: f.type for f in m.fields} | states
    fields |= {INCOMING + name: t for name, t in states.items()}
    fields |= {KEEP + let.name: let.type for let in kind.lets}
    exported = {EXPORT + let.name: let.type for let in stored}
    return Declared({p.name: p.type for p in m.params}, fields, exported, (*m.lists, *lists))
