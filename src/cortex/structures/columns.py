"""Fields of a graph's nodes as arrays, one entry per node, from what graph packages keep."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from cortex.errors import StructureError

Chosen = Mapping[str, Any] | Iterable[str] | None
"""Which fields: the model's name for each, those that keep their names, or all that there are."""


def array_of(value: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    if hasattr(value, "detach"):  # torch; `float` also takes care of bfloat16, which NumPy lacks
        value = value.detach().cpu()
        return (value.float() if value.is_floating_point() else value).numpy()
    return value


def column(value: Any) -> Any:
    """A field from a tensor or an array. Whole numbers in rows of one are one number per node."""
    value = array_of(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub" and value.shape[1:] == (1,):
        return value[:, 0]
    return value


def stacked(values: list[Any]) -> Any:
    """One value per node as one array, where they are arrays of one shape; the list itself otherwise."""
    if all(isinstance(value, int | float | str | None) for value in values):
        return values
    arrays = [array_of(value) for value in values]
    if arrays and all(isinstance(a, np.ndarray) and a.shape == arrays[0].shape for a in arrays):
        return np.stack(arrays)
    return arrays


def chosen(asked: str, fields: Chosen, available: Collection[str] | None) -> dict[str, Any]:
    """What each of the model's names is: the name of one of the `available` attributes, or what the user gave.

    `available` is None where there are no nodes to have any.
    """
    if fields is None:
        return {name: name for name in available or ()}
    if isinstance(fields, str):
        raise StructureError(f"{asked}(fields={fields!r}): give a list of names, or a dict from the model's names")
    given = dict(fields) if isinstance(fields, Mapping) else {name: name for name in fields}
    for name, source in given.items():
        if isinstance(source, str) and available is not None and source not in available:
            has = ", ".join(repr(name) for name in available) or "none"
            raise StructureError(
                f"{asked}(fields={{{name!r}: {source!r}}}): the nodes have no attribute {source!r}; there are {has}"
            )
    return given
