"""Rows of tables as fields of nodes, so that the backward pass meets values of nodes only.

before:  x = emb[node.word]
after:   x = node.rows_0        (a float field; whoever calls the program takes the rows from `emb` by `word`)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortex.ra import ir


@dataclass(frozen=True)
class RowField:
    """The float field `name`: at every node, the row of the parameter `table` that the integer field `index` names."""

    name: str
    table: str
    index: str


def rows_as_fields(m: ir.Model) -> tuple[ir.Model, tuple[RowField, ...]]:
    """`m` without lookups in parameters by fields, and the fields that it has instead."""
    found: dict[tuple[str, str], RowField] = {}
    types = {p.name: p.type for p in m.params}
    taken = {f.name for f in m.fields}

    def field(table: str, index: str) -> str:
        if (table, index) not in found:
            number = len(found)
            while f"rows_{number}" in taken:
                number += 1
            taken.add(f"rows_{number}")
            found[table, index] = RowField(f"rows_{number}", table, index)
        return found[table, index].name

    def rewritten(kind: ir.Kind) -> ir.Kind:
        lets = {let.name: let for let in kind.lets}
        new = []
        for let in kind.lets:
            match let.op:
                case ir.Lookup(table, index):
                    match lets[table].op, lets[index].op:
                        case ir.Param(param), ir.Field(name, path):
                            let = replace(let, op=ir.Field(field(param, name), path))
            new.append(let)
        return replace(kind, lets=tuple(new))

    kinds = tuple(map(rewritten, m.kinds))
    rows = tuple(found.values())
    fields = tuple(ir.FieldDecl(r.name, ir.TensorType(types[r.table].shape[1:])) for r in rows)
    return replace(m, kinds=kinds, fields=(*m.fields, *fields)), rows
