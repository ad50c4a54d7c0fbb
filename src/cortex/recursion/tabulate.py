"""Tabulate: what depends on one small integer only is computed for all its values when the weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared
from cortex.recursion.refuse import find_kind, refuse, refuse_unrolled

FLOAT_BYTES = 4


@step
class Tabulate(Step[ir.Model]):
    """Turn a kind whose only node data is one integer field into a table look-up.

    before:  kind leaf: t = W @ emb[node.word] + b; h = tanh(t)
    after:   tables leaf_h: row v is h of a leaf whose word is v     computed once, at load time
             kind leaf: h = leaf_h[node.word]
    legal:   the kind reads nothing but parameters and one integer field of the node itself, which has a limit because
             it indexes a table already; and the tables take at most `limit_bytes`. Every state keeps its bits: the
             tables are what the compiled code of the kind computes.

    `kind` is the name of a kind; None stands for every kind that is not a mere look-up and of which the above is true,
    and there must be one.
    """

    kind: str | None = None
    limit_bytes: int = 64 << 20

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with such kinds replaced by look-ups, and `Model.tables` to be filled."""
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
    """A kind that can be tabulated: its field, how many values that has, and how much memory one takes."""

    kind: ir.Kind
    field: str
    limit: int
    row_bytes: int

    @property
    def bytes(self) -> int:
        """The memory of its tables, without padding."""
        return self.limit * self.row_bytes


def candidate(m: ir.Model, kind: ir.Kind) -> Candidate | str:
    """What tabulating `kind` takes, or why it cannot be done."""
    ops = [let.op for let in kind.lets]
    if any(isinstance(op, ir.State | ir.Arity | ir.OverChildren) for op in ops) or any(let.over for let in kind.lets):
        return "depends on children"
    if any(isinstance(op, ir.Field) and op.path for op in ops):
        return "reads fields of children"
    read = dict.fromkeys(op.name for op in ops if isinstance(op, ir.Field))
    if len(read) != 1:
        return f"reads {len(read)} fields ({', '.join(map(repr, read))})" if read else "reads no field"
    field = next(f for f in m.fields if f.name in read)
    if field.type.dtype != "i64":
        return f"reads field {field.name!r}, which is not an integer"
    if field.limit is None:
        return f"reads field {field.name!r}, whose values have no limit"
    if not any(not isinstance(op, ir.Param | ir.Field | ir.Fill | ir.Lookup) for op in ops):
        return "is a look-up already"
    return Candidate(kind, field.name, field.limit, sum(FLOAT_BYTES * prod(s.type.shape) for s in m.states))


def _tabulate(m: ir.Model, c: Candidate) -> ir.Model:
    taken = {p.name for p in m.params}
    params = []
    for state in m.states:
        name = f"{c.kind.name}_{state.name}"
        while name in taken:
            name += "_"
        taken.add(name)
        params.append(ir.ParamDecl(name, ir.TensorType((c.limit, *state.type.shape))))
    m = replace(m, params=(*m.params, *params))
    b = Builder(Declared.of(m))
    index = b.add(ir.Field(c.field))
    results = tuple(b.add(ir.Lookup(b.add(ir.Param(p.name)), index)) for p in params)
    kinds = tuple(replace(k, lets=b.lets, results=results) if k.name == c.kind.name else k for k in m.kinds)
    table = ir.Table(c.kind, c.field, tuple(p.name for p in params))
    return replace(m, kinds=kinds, tables=(*m.tables, table))


def _accepted(m: ir.Model) -> str:
    names = [repr(k.name) for k in m.kinds if isinstance(candidate(m, k), Candidate)]
    can = f"Those that can: {', '.join(names)}." if names else ""
    rule = "A kind can be tabulated if all it reads from nodes is one integer field of its own that indexes a table."
    return f"{rule} {can}".rstrip()
