"""The form of a model's table, from the model that computes its rows."""

from __future__ import annotations

from collections.abc import Mapping

from cortex.ra import ir as ra
from cortex.runtime.tables import TableForm


def table_form(table: ra.Table, m: ra.Model, padding: Mapping[str, int]) -> TableForm:
    """The form of `table`, whose rows `m` computes and code takes with this `padding`."""
    limit = next(f.limit for f in m.fields if f.name == table.field)
    assert limit is not None
    shapes, aligns = tuple(s.type.shape for s in m.outputs), tuple(padding.get(name, 1) for name in table.params)
    return TableForm(table.field, limit, tuple(table.params), shapes, aligns)
