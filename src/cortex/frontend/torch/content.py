"""What a symbolic torch tensor holds, and how its elements are moved.

Floats and truth values are a `Value`: one let of the kind that is being traced. Integers are an `Integers`: their
elements are known one by one, each a Python integer or an integer field of a node, for that is what can index a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import Value, builder
from cortex.ra.ir import Cast


@dataclass(frozen=True, eq=False)
class Integers:
    """A tensor of integers: an array of Python integers and of scalar i64 values."""

    elements: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.elements.shape)

    @property
    def known(self) -> bool:
        """Is every element a Python integer?"""
        return all(isinstance(e, int) for e in self.elements.flat)


Content = Value | Integers


def integers(elements: Any, shape: tuple[int, ...]) -> Integers:
    """`elements`, row-major, in a shape."""
    array = np.empty(math.prod(shape), dtype=object)
    for i, element in enumerate(elements):
        array[i] = element
    return Integers(array.reshape(shape))


def as_value(x: Content) -> Value:
    """`x` for arithmetic, which is in single precision."""
    if isinstance(x, Value):
        return x
    parts = [_as_float(e) for e in x.elements.flat]
    if not parts:
        return pointwise.fill(0.0, x.shape)
    if all(isinstance(e, int) for e in x.elements.flat) and len(set(x.elements.flat)) == 1:
        return pointwise.fill(float(x.elements.flat[0]), x.shape)
    return movement.reshape(movement.concat([movement.reshape(p, (1,)) for p in parts], 0), x.shape)


def _as_float(element: int | Value) -> Value:
    if isinstance(element, int):
        return pointwise.fill(float(element))
    return builder().emit(Cast(element.name, "f32"), (), element)


def reshape(x: Content, shape: tuple[int, ...]) -> Content:
    """The elements, row-major, in another shape."""
    return Integers(x.elements.reshape(shape)) if isinstance(x, Integers) else movement.reshape(x, shape)


def permute(x: Content, perm: tuple[int, ...]) -> Content:
    """Axis i of the result is axis perm[i] of `x`."""
    return Integers(x.elements.transpose(perm)) if isinstance(x, Integers) else movement.transpose(x, perm)


def cut(x: Content, ranges: tuple[tuple[int, int, int], ...]) -> Content:
    """x[start:stop:step, ...], one triple per axis."""
    if isinstance(x, Integers):
        box: Any = (*(slice(*r) for r in ranges), ...)
        return Integers(x.elements[box])
    return movement.slice_axes(x, ranges)


def broadcast(x: Content, shape: tuple[int, ...]) -> Content:
    """`x` repeated to `shape`."""
    if isinstance(x, Integers):
        return Integers(np.broadcast_to(x.elements, shape))
    return pointwise.broadcast_to(x, shape)


def join(xs: list[Content], axis: int) -> Content:
    """One after the other along `axis`; integers only where all are."""
    whole = [x for x in xs if isinstance(x, Integers)]
    if len(whole) == len(xs):
        return Integers(np.concatenate([x.elements for x in whole], axis))
    values = [as_value(x) for x in xs]
    if any(v.dtype != values[0].dtype for v in values):
        values = [pointwise.as_float(v) for v in values]
    return movement.concat(values, axis)
