"""`x[...]`: slices, integers, ellipsis, None, and table lookup by an integer field."""

from __future__ import annotations

import operator
from typing import Any

from cortex.frontend.beyond import beyond
from cortex.frontend.builder import Value, builder
from cortex.frontend.movement import reshape, slice_axes
from cortex.frontend.spans import fail
from cortex.ra.ir import Lookup


def lookup(table: Value, index: Value) -> Value:
    """Row `index` of `table`."""
    if index.dtype != "i64" or index.shape:
        raise fail(
            f"a table is indexed by one integer field of a node, as in w.emb[node.word], not by {index.text()} of "
            f"{'truth values' if index.dtype == 'bool' else 'floats'}. What is computed from fields can be a field: "
            'fields={"row": lambda node: ...}, and w.emb[node.row].'
        )
    if not table.shape:
        raise fail(f"{table.text()} cannot be indexed: it is a scalar. A table has one row for each index.")
    return builder().emit(Lookup(table.name, index.name), table.shape[1:], table, index, dtype=table.dtype)


def index_value(x: Value, index: tuple[Any, ...]) -> Value:
    """`x[index]` for constant indices, with NumPy's meaning of integers, slices, `...` and None."""
    axes = _expand(x, index)
    ranges: list[tuple[int, int, int]] = []
    shape: list[int] = []
    axis = 0
    for item in axes:
        if item is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(item, slice):
            ranges.append(_range(x, axis, item))
            shape.append(len(range(*ranges[-1])))
        else:
            position = _position(x, axis, item)
            if not -size <= position < size:
                raise fail(
                    f"index {position} of {x.text()}: axis {axis} has size {size}, so indices from {-size} to "
                    f"{size - 1} are accepted."
                )
            ranges.append((position % size, position % size + 1, 1))
        axis += 1
    return reshape(slice_axes(x, ranges), shape)


def _expand(x: Value, index: tuple[Any, ...]) -> list[Any]:
    """`index` with `...` and missing axes written out as full slices."""
    ellipses = sum(item is Ellipsis for item in index)
    used = sum(item is not None and item is not Ellipsis for item in index)
    if ellipses > 1:
        raise fail(f"an index of {x.text()} has {ellipses} ellipses (`...`); one at most is accepted.")
    if used > len(x.shape):
        raise fail(f"{x.text()} is indexed with {used} indices, but has {len(x.shape)} axes.")
    missing = [slice(None)] * (len(x.shape) - used)
    expanded: list[Any] = []
    for item in index:
        expanded += missing if item is Ellipsis else [item]
    return expanded if ellipses else expanded + missing


def _position(x: Value, axis: int, item: Any) -> int:
    try:
        if isinstance(item, bool):  # which would add an axis in NumPy
            raise TypeError
        return operator.index(item)
    except TypeError:
        refusal = beyond if hasattr(item, "_cortex_path") else fail  # an item of a list, which seemed to hold nodes
        raise refusal(
            f"axis {axis} of {x.text()} is indexed with a {type(item).__name__}; integers, slices, `...` and None are "
            "accepted, and on the first axis an integer field such as node.word."
        ) from None


def _range(x: Value, axis: int, item: slice) -> tuple[int, int, int]:
    if item.step is not None and _position(x, axis, item.step) <= 0:
        raise fail(f"a slice of {x.text()} has step {item.step}; steps must be positive.")
    bounds = (None if b is None else _position(x, axis, b) for b in (item.start, item.stop, item.step))
    start, stop, step = slice(*bounds).indices(x.shape[axis])
    return start, max(start, stop), step
