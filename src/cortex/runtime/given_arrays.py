"""`out=`: arrays of the caller's that a call writes the states of the roots into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cortex.errors import StructureError
from cortex.ra.ir import StateDecl
from cortex.runtime.storage import Array

Given = tuple[Array | None, ...]


def given_arrays(out: Any, states: tuple[StateDecl, ...], roots: int | None) -> Given:
    """The array to write for each state, None for those that the call makes itself.

    `out` is a mapping from names of states, a tuple or list with an entry for each, or the array of the only state.
    For `roots` structures an array has one row for each; for one structure by itself (None) it has the state's shape.
    """
    names = [s.name for s in states]
    if isinstance(out, Mapping):
        unknown = [name for name in out if name not in names]
        if unknown:
            raise StructureError(f"out has an array for {unknown[0]!r}; the model's states are {', '.join(names)}")
        arrays = [out.get(name) for name in names]
    elif isinstance(out, tuple | list):
        if len(out) != len(names):
            raise StructureError(
                f"out has {len(out)} arrays; it must have one, or None, for each of the states {', '.join(names)}"
            )
        arrays = list(out)
    elif len(names) == 1:
        arrays = [out]
    else:
        raise StructureError(
            f"out is a {type(out).__name__}, and the model has {len(names)} states; give a tuple of arrays, or a "
            f"dictionary with the keys {', '.join(names)}"
        )
    for state, array in zip(states, arrays, strict=True):
        if array is not None:
            _check(state.name, array, state.type.shape if roots is None else (roots, *state.type.shape))
    _check_apart([(name, array) for name, array in zip(names, arrays, strict=True) if array is not None])
    return tuple(arrays)


def _check(name: str, array: Any, shape: tuple[int, ...]) -> None:
    wanted = f"it must be a writable float32 array of shape {shape}"
    if not isinstance(array, np.ndarray):
        raise StructureError(f"out for state {name!r} is a {type(array).__name__}; {wanted}")
    if array.dtype != np.float32:
        raise StructureError(f"out for state {name!r} has elements of type {array.dtype}; {wanted}")
    if array.shape != shape:
        raise StructureError(f"out for state {name!r} has shape {array.shape}; {wanted}")
    if not array.flags.writeable:
        raise StructureError(f"out for state {name!r} is read-only; {wanted}")
    if not array.flags.aligned:
        raise StructureError(f"out for state {name!r} is not aligned to whole elements; {wanted}")
    if not _has_own_elements(array):
        raise StructureError(f"out for state {name!r} has elements that share memory (by its strides); {wanted}")


def _has_own_elements(array: Array) -> bool:
    """Do the strides keep the elements of an array apart? Views made by slicing and transposing do."""
    if array.flags.c_contiguous or not array.size:
        return True
    reach = array.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return False
        reach = stride * extent
    return True


def _check_apart(given: list[tuple[str, Array]]) -> None:
    for i, (name, array) in enumerate(given):
        for other_name, other in given[:i]:
            if np.shares_memory(other, array):
                raise StructureError(
                    f"out for states {other_name!r} and {name!r} shares memory; each state needs elements of its own"
                )
