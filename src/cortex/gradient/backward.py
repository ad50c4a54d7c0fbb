"""The backward pass of a model: RA -> RA.

    forward    the model with further states: values that the backward pass needs
    backward   a model with a node for each node of the forward pass; the nodes below it are the node's users

A backward node reads the forward values of its node as fields, and the adjoints that its users have stored as states
over lists, one list for each way that leads from a user to a node. The groups are those of the forward pass in reverse,
so that users come first. Gradients of parameters are sums over all nodes of a kind of products of what the two passes
have stored: `sums`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection
from dataclasses import dataclass, replace

from cortex.gradient.constants import ConstantGraph, constant_graph
from cortex.gradient.edge_backward import USERS, Emission, emissions
from cortex.gradient.kind_backward import EXPORT, INCOMING, KEEP, KindBackward
from cortex.gradient.move_to_children import move_to_children
from cortex.gradient.rows_as_fields import RowField, rows_as_fields
from cortex.gradient.slots import SharedStates
from cortex.ir.node import walk
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.rules import RULES
from cortex.ra.rules.contractions import split_concats
from cortex.ra.rules.sink_slices import sink_slices_into_ops, sink_slices_into_views
from cortex.ra.shapes import Declared, rename_operands
from cortex.ra.simplify import drop_dead_lets, simplify

_WHOLE = tuple(r for r in RULES if r not in (split_concats, sink_slices_into_ops, sink_slices_into_views))
"""Rules that leave products of several gates together: their gradients are one product too."""


@dataclass(frozen=True)
class Use:
    """A list of the backward model: the users of `kinds` to whose `path` a node belongs."""

    relation: str
    kinds: tuple[int, ...]
    path: tuple[ir.Hop, ...]


@dataclass(frozen=True)
class Rows:
    """A value at each node: a state of the forward model or a field, of the node at the end of `path`."""

    name: str
    path: tuple[ir.Hop, ...] = ()


@dataclass(frozen=True)
class Sum:
    """The adjoint of the constant `let` of a kind: the sum over the kind's nodes of the backward state `g`, or, with
    `spec`, of its product with `x`."""

    kind: int
    let: str
    g: str
    spec: str = ""
    x: Rows | None = None


@dataclass(frozen=True)
class Gradient:
    """The two models, and how they are put together."""

    forward: ir.Model
    backward: ir.Model
    rows: tuple[RowField, ...]
    seeds: tuple[str, ...]
    uses: tuple[Use, ...]
    sums: tuple[Sum, ...]
    constants: tuple[ConstantGraph, ...]
    fields: tuple[tuple[str, str], ...]
    """Fields with gradients, and the backward states that hold these."""


def backward(m: ir.Model, seeds: Collection[str], params: Collection[str], fields: Collection[str] = ()) -> Gradient:
    """The backward pass from the adjoints of the states `seeds` to the gradients of `params` and float `fields`."""
    whole, rows = rows_as_fields(simplify(m, _WHOLE))
    whole = simplify(move_to_children(whole), _WHOLE)
    looked_up = {r.name for r in rows if r.table in params}
    wanted = frozenset({*fields, *looked_up})
    read = {n.name for k in whole.kinds for n in walk(k) if isinstance(n, ir.State)}
    reached = frozenset({*seeds, *read})
    kinds = [KindBackward(whole, kind, frozenset(params), wanted, reached) for kind in whole.kinds]
    for k in kinds:
        k.run()
    return _Assembly(whole, kinds, rows, tuple(s.name for s in whole.states if s.name in seeds)).gradient()


class _Assembly:
    """Places for all values that kinds store for each other."""

    def __init__(
        self, m: ir.Model, kinds: list[KindBackward], rows: tuple[RowField, ...], seeds: tuple[str, ...]
    ) -> None:
        self.m, self.kinds, self.rows, self.seeds = m, kinds, rows, seeds
        self._types = {s.name: s.type for s in m.states}
        self._kept_types: dict[str, ir.TensorType] = {}
        self._stored_types: dict[str, ir.TensorType] = {}
        self.kept = SharedStates("kept", self._kept_types)
        self.stored = SharedStates("adjoint", self._stored_types)
        self.uses: dict[tuple[tuple[ir.Hop, ...], Emission], list[int]] = {}
        self._needed_lets: dict[int, frozenset[str]] = {}

    def gradient(self) -> Gradient:
        """Both models."""
        for number, k in enumerate(self.kinds):
            for emission in emissions(k):
                placed = self._placed_emission(number, emission)
                self.uses.setdefault((placed.path, placed), []).append(number)
        sums = [s for number, k in enumerate(self.kinds) for s in self._sums(number, k)]
        named = [(Use(f"users_{i}", tuple(on), path), e) for i, ((path, e), on) in enumerate(self.uses.items())]
        field_names = {name for k in self.kinds for name in k.own_fields}
        field_names |= {name for _, e in named for name, _ in e.adjoints} & {f.name for f in self.m.fields}
        gradients = tuple((name, f"gradient_{i}") for i, name in enumerate(sorted(field_names)))
        model = self._backward(named, gradients)
        return Gradient(
            self._forward(),
            model,
            self.rows,
            self.seeds,
            tuple(use for use, _ in named),
            tuple(sums),
            tuple(constant_graph(self.m, n, k, [s.let for s in sums if s.kind == n]) for n, k in enumerate(self.kinds)),
            gradients,
        )

    def _placed_emission(self, number: int, e: Emission) -> Emission:
        return replace(e, lets=tuple(replace(let, op=self._placed(number, let.op), span=None) for let in e.lets))

    def _placed(self, number: int, op: ir.Op) -> ir.Op:
        """`op` with the names of places for made-up ones."""
        match op:
            case ir.Field(name, path) if name.startswith(KEEP):
                return ir.Field(self._keep(number, name.removeprefix(KEEP)), path)
            case ir.State(name, path) if name.startswith(EXPORT):
                return ir.State(self._store(number, name.removeprefix(EXPORT)), path)
            case _:
                return op

    def _keep(self, number: int, let: str) -> str:
        return self.kept.name(number, let, self.kinds[number].lets[let].type.shape)

    def _store(self, number: int, let: str) -> str:
        return self.stored.name(number, let, self.kinds[number].builder.types[let].shape)

    def _sums(self, number: int, k: KindBackward) -> list[Sum]:
        found = [Sum(number, p.constant, self._store(number, p.g), p.spec, self._rows(number, p.x)) for p in k.products]
        return found + [Sum(number, let, self._store(number, g)) for let, g in k.plain.items()]

    def _rows(self, number: int, x: str) -> Rows:
        k = self.kinds[number]
        if x in k.state_of:
            return Rows(k.state_of[x])
        match k.lets[x].op:
            case ir.State(name, path) | ir.Field(name, path) if k.lets[x].over is None:
                return Rows(name, path)
            case _:
                return Rows(self._keep(number, x))

    def _forward(self) -> ir.Model:
        kept = self.kept.declared()
        kinds = []
        for number, kind in enumerate(self.m.kinds):
            b = Builder(Declared.of(self.m))
            for let in kind.lets:
                b.add(let.op, let.name, let.span)
            held = (self.kept.let_of(number, s.name) for s in kept)
            results = tuple(
                b.add(ir.Fill(0.0, s.type.shape)) if let is None else let for let, s in zip(held, kept, strict=True)
            )
            kinds.append(replace(kind, lets=b.lets, results=(*kind.results, *results)))
        return replace(self.m, states=(*self.m.states, *kept), kinds=tuple(kinds))

    def _backward(self, named: list[tuple[Use, Emission]], gradients: tuple[tuple[str, str], ...]) -> ir.Model:
        bodies = [self._body(number, k, named, gradients) for number, k in enumerate(self.kinds)]
        stored = self.stored.declared()  # complete now
        of_fields = tuple(ir.StateDecl(state, self._field_type(name)) for name, state in gradients)
        states = (*stored, *of_fields)
        kinds = []
        for number, (b, names, totals) in enumerate(bodies):
            held = [self.stored.let_of(number, s.name) for s in stored]
            values = [None if let is None else names[let] for let in held] + totals
            results = tuple(
                b.add(ir.Fill(0.0, s.type.shape)) if v is None else v for v, s in zip(values, states, strict=True)
            )
            guard = (ir.Fact(ir.Value("kind"), number),)
            kinds.append(ir.Kind(self.kinds[number].kind.name, guard, drop_dead_lets(b.lets, results), results))
        ops = [let.op for kind in kinds for let in kind.lets]
        read = {op.name for op in ops if isinstance(op, ir.Field)}
        fields = [f for f in self.m.fields if f.name in read]
        fields += [ir.FieldDecl(s.name, s.type) for s in (*self.m.states, *self.kept.declared()) if s.name in read]
        fields += [ir.FieldDecl(seed_field(s), self._types[s]) for s in self.seeds if seed_field(s) in read]
        hops = {hop.name for op in ops if isinstance(op, ir.Field | ir.State) for hop in op.path}
        slots = tuple(s for s in self.m.slots if s in hops)
        lists = tuple(r for r in self.m.lists if r in hops)
        params = {op.name for op in ops if isinstance(op, ir.Param)}
        return ir.Model(
            f"{self.m.name}_backward",
            tuple(p for p in self.m.params if p.name in params),
            tuple(fields),
            slots,
            (*(use.relation for use, _ in named if use.relation in hops), *lists),
            states,
            tuple(kinds),
            unordered=(*slots, *lists),
        )

    def _field_type(self, name: str) -> ir.TensorType:
        return next(f.type for f in self.m.fields if f.name == name)

    def _body(
        self, number: int, k: KindBackward, named: list[tuple[Use, Emission]], gradients: tuple[tuple[str, str], ...]
    ) -> tuple[Builder, dict[str, str], list[str | None]]:
        """The lets of a backward kind, the names they have there, and the adjoints of fields."""
        seeds = {seed_field(s): self._types[s] for s in self.seeds}
        b = Builder(
            Declared(
                {p.name: p.type for p in self.m.params},
                ChainMap(self._kept_types, {f.name: f.type for f in self.m.fields} | self._types | seeds),
                self._stored_types,
                (*self.m.lists, *(use.relation for use, _ in named)),
            )
        )
        incoming: dict[str, list[str]] = {s: [b.add(ir.Field(seed_field(s)))] for s in self.seeds}
        for use, e in named:
            inner: dict[str, str] = {}
            for let in e.lets:
                inner[let.name] = b.add(rename_operands(_over(let.op, use.relation), inner))
            for name, let_name in e.adjoints:
                incoming.setdefault(name, []).append(b.add(ir.OverChildren("add", inner[let_name], use.relation)))
        totals = {name: _added(b, given) for name, given in incoming.items()}
        names: dict[str, str] = {}
        for let in k.builder.lets:
            match let.op:
                case ir.Field(name) if name.startswith(INCOMING):
                    state = name.removeprefix(INCOMING)
                    names[let.name] = totals.get(state) or b.add(ir.Fill(0.0, self._types[state].shape))
                case ir.Field(name, path) if name.startswith(KEEP):
                    state = self._kept_name(number, name.removeprefix(KEEP), let.name, k)
                    names[let.name] = b.add(ir.Field(state, path)) if state else b.add(ir.Fill(0.0, let.type.shape))
                case op:
                    names[let.name] = b.add(rename_operands(op, names))
        of_fields: list[str | None] = []
        for name, _ in gradients:
            given = [totals[name]] if name in totals else []
            given += [names[k.own_fields[name]]] if name in k.own_fields else []
            of_fields.append(_added(b, given) if given else None)
        return b, names, of_fields

    def _kept_name(self, number: int, let: str, reader: str, k: KindBackward) -> str:
        """The state that holds a kept value; "" where nothing that is stored depends on it."""
        return self._keep(number, let) if reader in self._needed(number, k) else ""

    def _needed(self, number: int, k: KindBackward) -> frozenset[str]:
        """The lets of a kind's own graph that stored values depend on."""
        if number not in self._needed_lets:
            stored = tuple(self.stored.lets(number)) + tuple(k.own_fields.values())
            self._needed_lets[number] = frozenset(let.name for let in drop_dead_lets(k.builder.lets, stored))
        return self._needed_lets[number]


def seed_field(state: str) -> str:
    """The field of the backward model that has the adjoints of a state from outside."""
    return f"seed_{state}"


def _over(op: ir.Op, relation: str) -> ir.Op:
    """`op` over the users in a certain list."""
    match op:
        case ir.Field(name, (ir.Each(each), *rest)) if each == USERS:
            return ir.Field(name, (ir.Each(relation), *rest))
        case ir.State(name, (ir.Each(each), *rest)) if each == USERS:
            return ir.State(name, (ir.Each(relation), *rest))
        case _:
            return op


def _added(b: Builder, given: list[str]) -> str:
    found = given[0]
    for g in given[1:]:
        found = b.add(ir.Binary("add", found, g))
    return found
