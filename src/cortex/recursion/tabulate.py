"""Tabulate: what depends on one small integer only is computed once for each of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names
from cortex.ra.simplify import drop_dead_lets
from cortex.recursion.refuse import find_kind, refuse, refuse_unrolled

FLOAT_BYTES = 4


@step
class Tabulate(Step[ir.Model]):
    """Turn what a kind computes from one integer field alone into look-ups in tables.

    before:  kind leaf: t = W @ emb[node.word] + b; h = tanh(t)
    after:   tables leaf_h: row v is h of a leaf whose word is v     computed once, when first looked up
             kind leaf: h = leaf_h[node.word]

    before:  kind inner: x = W @ emb[node.word]; h = tanh(x + U @ h_child)
    after:   tables inner_x: row v is x of a node whose word is v
             kind inner: h = tanh(inner_x[node.word] + U @ h_child)

    legal:   something that the kind computes depends on parameters and one integer field of the node itself alone, is
             more than a look-up, and the field has a limit because it indexes a table already; and the tables take at
             most `limit_bytes`. Every state keeps its bits: the tables are what the compiled code of the kind computes.

    `kind` is the name of a kind; None stands for every kind of which the above is true, and there must be one.
    """

    kind: str | None = None
    limit_bytes: int = 64 << 20

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with such values replaced by look-ups, and `Model.tables` to be filled."""
        refuse_unrolled(self, program)
        if self.kind is not None:
            kind = find_kind(program, self.kind, self)
            found = candidate(program, kind)
            if isinstance(found, str):
                refuse(self, f"kind {kind.name!r} {found}. {_accepted(program)}", program, kind)
            chosen = [found]
        else:
            chosen = [c for k in program.kinds if isinstance(c := candidate(program, k), Candidate)]
            if not chosen:
                reasons = "; ".join(f"{k.name!r} {candidate(program, k)}" for k in program.kinds)
                refuse(self, f"no kind can be tabulated: {reasons}. {_accepted(program)}", program)
        needed = sum(c.bytes for c in chosen)
        if needed > self.limit_bytes:
            parts = ", ".join(f"{c.kind.name!r}: {c.limit} values of {c.field!r} x {c.row_bytes} bytes" for c in chosen)
            refuse(
                self,
                f"the tables would take {needed} bytes ({parts}), and the limit is {self.limit_bytes}. Give a limit of "
                f"at least {needed}, or leave the kind as it is.",
                program,
            )
        for c in chosen:
            program = _tabulate(program, c)
        return program


@dataclass(frozen=True)
class Candidate:
    """What can be tabulated of a kind: the lets that become look-ups, their field, and how many values that has."""

    kind: ir.Kind
    lets: tuple[ir.Let, ...]
    field: str
    limit: int

    @property
    def row_bytes(self) -> int:
        """The memory that one value of the field takes."""
        return sum(FLOAT_BYTES * prod(let.type.shape) for let in self.lets)

    @property
    def bytes(self) -> int:
        """The memory of the tables, without padding."""
        return self.limit * self.row_bytes


def candidate(m: ir.Model, kind: ir.Kind) -> Candidate | str:
    """What tabulating `kind` takes, or why it cannot be done.

    Where several fields qualify, the one is taken that most lets depend on.
    """
    fields = {f.name: f for f in m.fields if f.type.dtype == "i64" and f.limit is not None}
    reads: dict[str, frozenset[str] | None] = {}  # by let: the fields it depends on alone; None: on more than fields
    works: set[str] = set()  # lets that are more than a look-up
    for let in kind.lets:
        reads[let.name] = _reads(let, reads)
        names = operand_names(let.op)
        if any(n in works for n in names) or not isinstance(let.op, ir.Param | ir.Field | ir.Fill | ir.Lookup):
            works.add(let.name)
    alone = {name: next(iter(found)) for name, found in reads.items() if found is not None and len(found) == 1}
    counts = Counter(field for name, field in alone.items() if name in works and field in fields)
    if not counts:
        return _why_not(m, reads, alone, works)
    field = counts.most_common(1)[0][0]
    inside = {name for name, f in alone.items() if f == field}
    used = {n for let in kind.lets if let.name not in inside for n in operand_names(let.op)} | set(kind.results)
    chosen = tuple(
        let for let in kind.lets if let.name in inside & works & used and let.type.dtype == "f32" and not let.over
    )
    limit = fields[field].limit
    if not chosen or limit is None:
        return "computes nothing but integers from a field"
    return Candidate(kind, chosen, field, limit)


def _reads(let: ir.Let, reads: Mapping[str, frozenset[str] | None]) -> frozenset[str] | None:
    """The fields of the node itself that a let depends on; None where it depends on children, or on their number."""
    match let.op:
        case ir.State() | ir.Arity() | ir.OverChildren():
            return None
        case ir.Field(name, path):
            return None if path else frozenset((name,))
        case op if let.over is None:
            below = [reads[n] for n in operand_names(op)]
            found = [b for b in below if b is not None]
            return frozenset[str]().union(*found) if len(found) == len(below) else None
        case _:
            return None


def _why_not(m: ir.Model, reads: Mapping[str, frozenset[str] | None], alone: Mapping[str, str], works: set[str]) -> str:
    """What keeps a kind from being tabulated."""
    computed = [alone[name] for name in alone if name in works]
    if computed:
        field = next(f for f in m.fields if f.name == computed[0])
        reason = "is not an integer" if field.type.dtype != "i64" else "has values without a limit"
        return f"reads field {field.name!r}, which {reason}"
    if alone:
        return "makes nothing but look-ups of its fields"
    several = next((found for found in reads.values() if found and len(found) > 1), None)
    if several:
        return f"reads {len(several)} fields ({', '.join(map(repr, sorted(several)))}) at once"
    return "computes nothing from fields of its own"


def _tabulate(m: ir.Model, c: Candidate) -> ir.Model:
    taken = {p.name for p in m.params}
    states = {result: s.name for s, result in zip(m.states, c.kind.results, strict=True)}
    params: dict[str, ir.ParamDecl] = {}
    for let in c.lets:
        name = f"{c.kind.name}_{states.get(let.name, let.name)}"
        while name in taken:
            name += "_"
        taken.add(name)
        params[let.name] = ir.ParamDecl(name, ir.TensorType((c.limit, *let.type.shape)))
    m = replace(m, params=(*m.params, *params.values()))
    results = tuple(params)
    table = ir.Table(
        replace(c.kind, lets=drop_dead_lets(c.kind.lets, results), results=results),
        c.field,
        tuple(p.name for p in params.values()),
    )
    b = Builder(Declared.of(m), [let.name for let in c.kind.lets])
    index = b.add(ir.Field(c.field))
    for let in c.kind.lets:
        if let.name in params:
            b.add(ir.Lookup(b.add(ir.Param(params[let.name].name)), index), let.name, let.span)
        else:
            b.add(let.op, let.name, let.span)
    looking_up = replace(c.kind, lets=drop_dead_lets(b.lets, c.kind.results))
    kinds = tuple(looking_up if k.name == c.kind.name else k for k in m.kinds)
    return replace(m, kinds=kinds, tables=(*m.tables, table))


def _accepted(m: ir.Model) -> str:
    names = [repr(k.name) for k in m.kinds if isinstance(candidate(m, k), Candidate)]
    can = f"Those that can: {', '.join(names)}." if names else ""
    rule = "What a kind computes from one integer field of its own, which indexes a table, can be tabulated."
    return f"{rule} {can}".rstrip()
