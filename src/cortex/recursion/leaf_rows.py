"""What leaves compute, as functions of one integer field; and tables of it with more columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets

Function = tuple[ir.Let, ...]
"""Lets from parameters and states of one leaf, `State(name, ())`, to the value of the last."""


@dataclass(frozen=True)
class LeafRows:
    """The lets of the kind of leaves, with no look-up in its table left, and which of them is which state."""

    kind: ir.Kind
    lets: tuple[ir.Let, ...]
    states: Mapping[str, str]
    field: str
    limit: int
    table: ir.Table | None

    @staticmethod
    def of(m: ir.Model, kind: ir.Kind) -> LeafRows | str:
        """Those of `kind`, or what keeps it from having any. Only states that depend on the field alone are there."""
        table = next((t for t in m.tables if t.kind.name == kind.name), None)
        b = Builder(Declared.of(m), [let.name for let in (*kind.lets, *(table.kind.lets if table else ()))])
        names: dict[str, str] = {}
        columns: dict[ir.Op, str] = {}
        if table is not None:
            inside: dict[str, str] = {}
            for let in table.kind.lets:
                inside[let.name] = b.add(rename_operands(let.op, inside), span=let.span)
            columns = {ir.Param(p): inside[r] for p, r in zip(table.params, table.kind.results, strict=True)}
        ops = {let.name: let.op for let in kind.lets}
        for let in kind.lets:
            found = columns.get(ops[let.op.table]) if isinstance(let.op, ir.Lookup) else None
            if found is None:
                found = b.add(rename_operands(let.op, names), span=let.span)
            names[let.name] = found
        reads = fields_read(b.lets, {p for t in m.tables for p in t.params})
        results = {s.name: names[r] for s, r in zip(m.states, kind.results, strict=True)}
        limits = {f.name: f.limit for f in m.fields if f.type.dtype == "i64" and f.limit is not None}
        used = [f for r in results.values() if (f := reads[r]) is not None and len(f) == 1 and f <= limits.keys()]
        if not used:
            return "computes no state from parameters and one integer field that indexes a table"
        field = next(iter(used[0]))
        if table is not None and table.field != field:
            return "has a table of another field already"
        alone = {s: r for s, r in results.items() if (f := reads[r]) is not None and f <= {field}}
        return LeafRows(kind, b.lets, alone, field, limits[field], table)

    def extend(self, m: ir.Model, wanted: tuple[Function, ...]) -> tuple[ir.Model, tuple[str, ...]]:
        """`m` with a table of leaves that has a column for each of `wanted` too; the parameters that these are."""
        taken = {p.name for p in m.params}
        params: list[ir.ParamDecl] = []
        for number, function in enumerate(wanted):
            name = f"{self.kind.name}_{number}"
            while name in taken:
                name += "_"
            taken.add(name)
            params.append(ir.ParamDecl(name, ir.TensorType((self.limit, *function[-1].type.shape))))
        b = Builder(Declared.of(m))
        for let in self.lets:
            b.add(let.op, let.name, let.span)
        results = tuple(self._add(b, function) for function in wanted)
        names = tuple(p.name for p in params)
        before, known = (self.table.params, self._columns()) if self.table else ((), ())
        lets = drop_dead_lets(b.lets, (*known, *results))
        kind = replace(self.kind, lets=lets, results=(*known, *results))
        table = ir.Table(kind, self.field, (*before, *names))
        others = tuple(t for t in m.tables if t is not self.table)
        return replace(m, params=(*m.params, *params), tables=(*others, table)), names

    def _columns(self) -> tuple[str, ...]:
        """The results of the table that there is; its lets are the first here, in their order."""
        assert self.table is not None
        places = {let.name: place for place, let in enumerate(self.table.kind.lets)}
        return tuple(self.lets[places[r]].name for r in self.table.kind.results)

    def _add(self, b: Builder, function: Function) -> str:
        names: dict[str, str] = {}
        for let in function:
            if isinstance(let.op, ir.State):
                names[let.name] = self.states[let.op.name]
            else:
                names[let.name] = b.add(rename_operands(let.op, names), span=let.span)
        return names[function[-1].name]


def fields_read(lets: tuple[ir.Let, ...], tables: set[str]) -> dict[str, frozenset[str] | None]:
    """By let, the fields of the node itself that it depends on; None where it depends on more, tables among that."""
    reads: dict[str, frozenset[str] | None] = {}
    for let in lets:
        match let.op:
            case ir.State() | ir.Arity() | ir.OverChildren():
                reads[let.name] = None
            case ir.Param(name):
                reads[let.name] = None if name in tables else frozenset()
            case ir.Field(name, path):
                reads[let.name] = None if path else frozenset((name,))
            case op:
                below = [reads[n] for n in operand_names(op)]
                found = [f for f in below if f is not None]
                reads[let.name] = frozenset[str]().union(*found) if len(found) == len(below) else None
    return reads
