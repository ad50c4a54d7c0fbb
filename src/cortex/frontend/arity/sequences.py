"""Steps over the items of a list: one node for each position, whatever the length of the list.

    h_0 = f(w, x_0); h_i = g(h_(i-1), w, x_i); result = r(h_(n-1), sum of all h_i)

A routine has a position for each item of a list relation of an owner. A position has a slot to the one before it, to
the item and to positions of other routines at the same place, and to the owner's values that do not depend on it. The
owner has slots to the first and the last position, and a list of all. Positions are nodes of the linear form, which
the linearizer makes; nobody after it can tell them from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cortex.frontend.arity.same_graph import same_graph
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.write_out import write_out


@dataclass(frozen=True)
class Body:
    """Lets and results."""

    lets: tuple[ir.Let, ...]
    results: tuple[str, ...]

    def kind(self) -> ir.Kind:
        """As a kind without a guard."""
        return ir.Kind("body", (), self.lets, self.results)


@dataclass(frozen=True)
class Routine:
    """What is computed at every position; `first` where none is before it, None if that makes no difference.

    `name` is also the relation from the owner to all positions.
    """

    name: str
    relation: str
    is_forward: bool
    states: tuple[ir.StateDecl, ...]
    first: Body | None
    rest: Body

    @property
    def prev(self) -> str:
        """The slot to the position before."""
        return f"{self.name}_before"

    def end(self, is_last: bool) -> str:
        """The owner's slot to its first or last position."""
        return f"{self.name}_last" if is_last else f"{self.name}_first"

    def at(self, source: str) -> str:
        """The slot to the item of a relation, or to the position of another routine, at the same place."""
        return f"{self.name}_at_{source}"

    @property
    def owner(self) -> str:
        """The slot to what the owner computes before."""
        return f"{self.name}_owner"

    def bodies(self) -> tuple[Body, ...]:
        """Those that there are."""
        return (self.rest,) if self.first is None else (self.first, self.rest)

    def slots(self) -> dict[str, None]:
        """The slots that positions read, in order."""
        paths = (let.op.path for b in self.bodies() for let in b.lets if isinstance(let.op, ir.State | ir.Field))
        own = {path[0].name: None for path in paths if path}
        return own if self.first is None else {self.prev: None} | own


@dataclass(frozen=True)
class Sequences:
    """The routines of one kind, each after those that it reads, and what the owner computes for them."""

    routines: tuple[Routine, ...]
    before: Body
    states: tuple[ir.StateDecl, ...]
    """Of `before`."""
    rows: tuple[ir.Rows, ...] = ()
    """Results that have a row for each position of a routine; of one name, one after the other."""

    @property
    def name(self) -> str:
        """What the values of the owner are called together."""
        return f"before_{self.routines[0].name}"

    def is_same(self, other: Sequences) -> bool:
        """Does `other` compute the same?"""
        if len(self.routines) != len(other.routines) or (self.states, self.rows) != (other.states, other.rows):
            return False
        for a, b in zip(self.routines, other.routines, strict=True):
            if replace(a, first=None, rest=NOTHING) != replace(b, first=None, rest=NOTHING):
                return False
            if (a.first is None) != (b.first is None):
                return False
            pairs = zip(a.bodies(), b.bodies(), strict=True)
            if not all(same_graph(x.kind(), y.kind()) for x, y in pairs):
                return False
        return True


NOTHING = Body((), ())


def written_out(kind: ir.Kind, sequences: Sequences, lengths: Mapping[str, int], declared: Declared) -> ir.Kind:
    """`kind` for these numbers of items, all at least 1, with the bodies of all positions in place of their states.

    Rows of results are results, too, after the others.
    """
    b = Builder(declared)
    fixed = _write(b, _for_items(sequences.before, lengths, declared), {})
    at: dict[tuple[str, int, str], str] = {}
    for routine in sequences.routines:
        relation, count = routine.relation, lengths[routine.relation]
        order = range(count) if routine.is_forward else range(count - 1, -1, -1)
        before = -1
        for number, i in enumerate(order):
            body = routine.rest if routine.first is None or number else routine.first
            known: dict[tuple[str, str], str] = {}
            for state in routine.states:
                if number:
                    known[routine.prev, state.name] = at[routine.name, before, state.name]
            for other in sequences.routines:
                for state in other.states:
                    if (other.name, i, state.name) in at:
                        known[routine.at(other.name), state.name] = at[other.name, i, state.name]
            for state, name in zip(sequences.states, fixed, strict=True):
                known[routine.owner, state.name] = name
            item = (ir.Item(relation, i),)
            found = _write(b, body, known, {routine.at(relation): item, routine.owner: (), None: item})
            for state, name in zip(routine.states, found, strict=True):
                at[routine.name, i, state.name] = name
            before = i
    counts = {**lengths, **{r.name: lengths[r.relation] for r in sequences.routines}}
    body = _for_items(Body(kind.lets, kind.results), counts, declared)
    known = {(f"{name}@{i}", state): let for (name, i, state), let in at.items()}
    for routine in sequences.routines:
        for state in routine.states:
            for is_last in (False, True):
                last = at[routine.name, counts[routine.name] - 1 if is_last else 0, state.name]
                known[routine.end(is_last), state.name] = last
    results = _write(b, body, known)
    results += tuple(row for x in sequences.rows for row in _rows(x, sequences, counts, at))
    return ir.Kind(kind.name, kind.guard, b.lets, results)


def _rows(
    rows: ir.Rows, sequences: Sequences, counts: Mapping[str, int], at: Mapping[tuple[str, int, str], str]
) -> list[str]:
    """The lets that are rows of a result."""
    routine = next(r.name for r in sequences.routines if rows.relation in (r.name, r.end(False)))
    each = [at[routine, i, rows.state] for i in range(counts[routine])]
    return {"list": each, "reversed": each[::-1], "slot": each[:1]}[rows.how]


def _for_items(body: Body, counts: Mapping[str, int], declared: Declared) -> Body:
    kind = body.kind()
    for relation, count in counts.items():
        kind = write_out(kind, relation, count, declared) if count else _without(kind, relation, declared)
    return Body(with_numbers(kind.lets, counts), kind.results)


def _without(kind: ir.Kind, relation: str, declared: Declared) -> ir.Kind:
    """`kind` where there is nothing in a list."""
    b = Builder(declared)
    names: dict[str, str] = {}
    for let in kind.lets:
        if let.over == relation:
            continue
        is_empty = isinstance(let.op, ir.OverChildren) and let.op.name == relation
        op = ir.Fill(0.0, let.type.shape) if is_empty else rename_operands(let.op, names)
        names[let.name] = b.add(op, span=let.span)
    return ir.Kind(kind.name, kind.guard, b.lets, tuple(names[r] for r in kind.results))


def with_numbers(lets: tuple[ir.Let, ...], lengths: Mapping[str, int]) -> tuple[ir.Let, ...]:
    """Lets of a node with these numbers of children."""

    def number(let: ir.Let) -> ir.Let:
        match let.op:
            case ir.Arity(name) if name in lengths:
                return replace(let, op=ir.Fill(float(lengths[name]), ()))
            case _:
                return let

    return tuple(number(let) for let in lets)


def _write(
    b: Builder, body: Body, known: dict[tuple[str, str], str], items: dict[str | None, tuple[ir.Hop, ...]] | None = None
) -> tuple[str, ...]:
    """Add a body; states at the end of a slot (or item) are `known`, other slots, and fields of its own, at `items`."""
    names: dict[str, str] = {}
    for let in body.lets:
        match let.op:
            case ir.State(name, (ir.Slot(slot),)) if (slot, name) in known:
                names[let.name] = known[slot, name]
                continue
            case ir.State(name, (ir.Item(relation, i),)) if (f"{relation}@{i}", name) in known:
                names[let.name] = known[f"{relation}@{i}", name]
                continue
            case ir.State(name, (ir.Slot(slot), *rest)) | ir.Field(name, (ir.Slot(slot), *rest)) if (
                items and slot in items
            ):
                op: ir.Op = replace(let.op, path=(*items[slot], *rest))
            case ir.Field(_, ()) if items and None in items:
                op = replace(let.op, path=items[None])
            case _:
                op = rename_operands(let.op, {x: names[x] for x in operand_names(let.op)})
        names[let.name] = b.add(op, span=let.span)
    return tuple(names[r] for r in body.results)
