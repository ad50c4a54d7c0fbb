"""The model that computes a table: one kind, one field, no children."""

from __future__ import annotations

from dataclasses import replace

from cortex.ra import ir


def table_model(m: ir.Model, table: ir.Table) -> ir.Model:
    """The model whose states, at one node for each value of the field, are the rows of the table's parameters."""
    types = {let.name: let.type for let in table.kind.lets}
    read = {let.op.name for let in table.kind.lets if isinstance(let.op, ir.Param)}
    return ir.Model(
        name=f"{m.name}_{table.kind.name}",
        params=tuple(p for p in m.params if p.name in read),
        fields=tuple(f for f in m.fields if f.name == table.field),
        slots=(),
        lists=(),
        states=tuple(ir.StateDecl(p, types[r]) for p, r in zip(table.params, table.kind.results, strict=True)),
        kinds=(replace(table.kind, guard=(), own_group=True),),
    )
