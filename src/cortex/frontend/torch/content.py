"""What a symbolic torch tensor holds, and how its elements are moved.

Floats and truth values are a `Value`: one let of the kind that is being traced. Integers are an `Integers`: their
elements are known one by one, each a Python integer or a whole number of a node, for that is what can index a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import OTHER_NODE, Builder, Value, builder
from cortex.frontend.spans import fail
from cortex.ra.ir import Cast


@dataclass(frozen=True, eq=False)
class Whole:
    """A field of a node that holds an integer: read as an index where it is one, and as a float where it becomes one.

    So numbers that index nothing need not fit the 32 bits of an index. `at` is a position in a field of several.
    """

    field: Any
    builder: Builder
    at: int | None = None

    def index(self) -> Value:
        """As what indexes."""
        self._check()
        field = self.field if self.at is None else self.field._cortex_item(self.at)
        index: Value = field._cortex_index()
        return index

    def as_float(self) -> Value:
        """As what is computed with."""
        all_of_it = self.whole()
        if self.at is None:
            return all_of_it
        return movement.reshape(movement.slice_axes(all_of_it, ((self.at, self.at + 1, 1),)), ())

    def whole(self) -> Value:
        """The field, of which this may be a part, as what is computed with."""
        self._check()
        return _as_float(self.field._cortex_value())

    def _check(self) -> None:
        if self.builder is not builder():
            raise fail(OTHER_NODE)


@dataclass(frozen=True, eq=False)
class Integers:
    """A tensor of integers: an array of Python integers, of scalar i64 values, and of fields not yet read."""

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


def whole_field(field: Any) -> Whole:
    """An integer field of the node that is being traced."""
    return Whole(field, builder())


def whole_fields(field: Any, count: int) -> Integers:
    """A field that holds so many integers."""
    return integers([Whole(field, builder(), at) for at in range(count)], (count,))


def as_indices(x: Integers) -> Integers:
    """`x` with its fields read as what indexes."""
    return integers([e.index() if isinstance(e, Whole) else e for e in x.elements.flat], x.shape)


def as_value(x: Content) -> Value:
    """`x` for arithmetic, which is in single precision."""
    if isinstance(x, Value):
        return x
    if (field := _all_of_a_field(list(x.elements.flat))) is not None:
        return movement.reshape(field, x.shape)
    parts = [_as_float(e) for e in x.elements.flat]
    if not parts:
        return pointwise.fill(0.0, x.shape)
    if all(isinstance(e, int) for e in x.elements.flat) and len(set(x.elements.flat)) == 1:
        return pointwise.fill(float(x.elements.flat[0]), x.shape)
    return movement.reshape(movement.concat([movement.reshape(p, (1,)) for p in parts], 0), x.shape)


def _all_of_a_field(elements: list[Any]) -> Value | None:
    """The field of which these are all elements in order, if they are."""
    first = elements[0] if elements else None
    for at, e in enumerate(elements):
        if not (isinstance(e, Whole) and isinstance(first, Whole) and e.field is first.field and e.at == at):
            return None
    found = first.whole() if isinstance(first, Whole) else None
    return found if found is not None and found.shape == (len(elements),) else None


def _as_float(element: int | Value | Whole) -> Value:
    match element:
        case int():
            return pointwise.fill(float(element))
        case Whole():
            return element.as_float()
    return element if element.dtype == "f32" else builder().emit(Cast(element.name, "f32"), element.shape, element)


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
    return movement.concat([as_value(x) for x in xs], axis)
