"""Computing with an integer field to index a table: `w.emb[node.word + 1]`, `w.emb[2 * node.word]`.

RA looks up a row by a field itself. Row `2 * word + 1` of a table is row `word` of its slice `[1::2]`, which has as
many rows as there are words that are right, so that the linearizer checks the range as always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cortex.frontend.builder import Value
from cortex.frontend.computed import Computed
from cortex.frontend.facts import ABSENT
from cortex.frontend.indexing import lookup
from cortex.frontend.movement import slice_axes
from cortex.frontend.signals import NeedsExample
from cortex.frontend.spans import fail


class IndexArithmetic:
    """An attribute that may be an index, computed from another one perhaps."""

    __slots__ = ()
    _cortex_computed: Callable[[], Computed | None]
    _cortex_sample: Callable[[], Any]
    _cortex_index: Callable[[], Value]

    def _cortex_row(self, table: Value) -> Value:
        """The row of the table that has this number."""
        field, scale, offset = linear(self)
        if field is self and field._cortex_computed() is not None and field._cortex_sample() is ABSENT:
            raise NeedsExample(f"whether {field!r} is an integer")
        if field is self:
            return lookup(table, field._cortex_index())
        if scale < 1 or offset < 0:
            raise fail(
                f"a table is indexed with {_text(field, scale, offset)}, which can be negative. Make it a field, which "
                f'is checked: fields={{"row": lambda node: {_text(field, scale, offset)}}}, and index with node.row.'
            )
        if table.shape and offset >= table.shape[0]:
            raise fail(
                f"{table.text()} is indexed with {_text(field, scale, offset)}, but has {table.shape[0]} rows only."
            )
        ranges = [(0, n, 1) for n in table.shape]
        ranges[:1] = [(offset, n, scale) for n in table.shape[:1]]
        return lookup(slice_axes(table, ranges), field._cortex_index())


def linear(x: Any) -> tuple[Any, int, int]:
    """A field, `scale` and `offset` such that `x` is `scale * field + offset`: of integers; else `x` itself."""
    computed = x._cortex_computed()
    sample = x._cortex_sample()
    may_be_whole = sample is ABSENT or (isinstance(sample, int | np.integer) and type(sample) is not bool)
    if computed is None or not may_be_whole:
        return x, 1, 0
    operands = x._cortex_operands()
    match computed.fn, *(type(each) is int for each in operands):
        case "neg", False:
            field, scale, offset = linear(operands[0])
            return field, -scale, -offset
        case ("add" | "sub" | "mul") as fn, False, True:
            field, scale, offset = linear(operands[0])
            by = operands[1]
        case ("add" | "mul") as fn, True, False:
            field, scale, offset = linear(operands[1])
            by = operands[0]
        case "sub", True, False:
            field, scale, offset = linear(operands[1])
            return field, -scale, operands[0] - offset
        case _:
            return x, 1, 0
    if fn == "mul":
        return field, scale * by, offset * by
    return field, scale, offset + by if fn == "add" else offset - by


def _text(field: Any, scale: int, offset: int) -> str:
    shown = repr(field).split(" = ")[0]
    if scale == -1:
        return f"{offset} - {shown}" if offset else f"-{shown}"
    scaled = shown if scale == 1 else f"{scale} * {shown}"
    return scaled if not offset else f"{scaled} {'-' if offset < 0 else '+'} {abs(offset)}"
