"""The tensor functions on NumPy arrays: what they mean where nothing is being traced.

They have the names and the parameters of those in functions.py. Numbers keep NumPy's element types; what consists of
integers or truth values is computed with in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from types import CodeType
from typing import Any

import numpy as np

from cortex.frontend.spans import fail, user_frame
from cortex.frontend.written import positions

Site = tuple[CodeType, tuple[int | None, ...]]
"""A call in the user's code: the code, and the offset of the instruction."""

SHAPE_OVER_NONE: ContextVar[Callable[[Site], tuple[int, ...] | None] | None] = ContextVar("cortex_none", default=None)
"""What tells the shape of a reduction over no children, while a model runs uncompiled."""


def in_a_run(result: Any) -> Any:
    """What a function computed, as a model gets it while it runs uncompiled: no view of what it was given."""
    if SHAPE_OVER_NONE.get() is None:
        return result
    return [copied(x) for x in result] if isinstance(result, list) else copied(result)


def copied(x: Any) -> Any:
    """An array of its own; anything else as it is."""
    return x.copy() if isinstance(x, np.ndarray) else x


def read_only(x: Any) -> Any:
    """An array that a model gets and may not change: a weight, or what a node holds; anything else as it is."""
    if not isinstance(x, np.ndarray):
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def call_site() -> Site | None:
    """The user's call that is being evaluated."""
    frame = user_frame()
    return None if frame is None else (frame.f_code, positions(frame.f_code)[frame.f_lasti // 2])


def array_of(x: Any) -> Any:
    """Anything that a tensor can be computed from, as an array of floats."""
    if x is None:
        raise fail("None is used as a tensor here. Where an attribute of the node may be None, test `is None` first.")
    array = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
    return array if array.dtype.kind == "f" else array.astype(np.float32)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    x = array_of(x)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return np.tanh(array_of(x))


def exp(x: Any) -> Any:
    """e to the power of x."""
    return np.exp(array_of(x))


def log(x: Any) -> Any:
    """The natural logarithm."""
    return np.log(array_of(x))


def sqrt(x: Any) -> Any:
    """The square root."""
    return np.sqrt(array_of(x))


def abs(x: Any) -> Any:
    """The absolute value."""
    return np.abs(array_of(x))


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return np.maximum(array_of(x), 0)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    x = array_of(x)
    return np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))


def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    """x where x > 0, else slope * x."""
    x = array_of(x)
    return np.where(x > 0, x, slope * x)


def maximum(x: Any, y: Any) -> Any:
    """The larger of two elements."""
    return np.maximum(array_of(x), array_of(y))


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two elements."""
    return np.minimum(array_of(x), array_of(y))


def where(cond: Any, x: Any, y: Any) -> Any:
    """`x` where `cond`, else `y`."""
    return np.where(np.asarray(cond), array_of(x), array_of(y))


def concat(xs: Iterable[Any], axis: int = 0) -> Any:
    """Join arrays along an axis."""
    return np.concatenate(_to_join(xs), axis)


def stack(xs: Iterable[Any], axis: int = 0) -> Any:
    """Join arrays of one shape along a new axis."""
    return np.stack(_to_join(xs), axis)


def _to_join(xs: Iterable[Any]) -> list[Any]:
    """The arrays; truth values among themselves stay truth values."""
    parts = list(xs)
    is_truth = bool(parts) and all(getattr(x, "dtype", None) == np.bool_ for x in parts)
    return parts if is_truth else [array_of(x) for x in parts]


def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> Any:
    """Cut into `parts` equal parts along an axis, or into parts of the given sizes."""
    x = array_of(x)
    if isinstance(parts, int):
        return np.split(x, parts, axis)
    if int(np.sum(parts)) != x.shape[axis]:
        raise fail(f"split({list(parts)}): the sizes add up to {np.sum(parts)}, but axis {axis} has {x.shape[axis]}.")
    return np.split(x, np.cumsum(parts)[:-1], axis)


def reshape(x: Any, *shape: Any) -> Any:
    """The same elements in another shape."""
    return array_of(x).reshape(*shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """The axes reversed, or permuted."""
    return np.transpose(array_of(x), axes)


def embedding(table: Any, index: Any) -> Any:
    """Row `index` of a table."""
    return array_of(table)[index]


def softmax(x: Any, axis: int = -1) -> Any:
    """Along an axis of an array; or of several arrays, as a list with one for each."""
    if not _is_items(x):
        return _softmax(array_of(x), axis)
    items = [array_of(item) for item in x]
    return list(_softmax(np.stack(np.broadcast_arrays(*items)), 0)) if items else []


def _softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - np.max(x, axis, keepdims=True))
    return powers / np.sum(powers, axis, keepdims=True)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalize along the last axis to mean 0 and variance 1, then scale and shift."""
    x = array_of(x)
    centred = x - np.mean(x, -1, keepdims=True)
    result = centred / np.sqrt(np.mean(centred * centred, -1, keepdims=True) + eps)
    result = result if weight is None else result * array_of(weight)
    return result if bias is None else result + array_of(bias)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Over axes of an array; or of several arrays, 0 over none."""
    return _reduced("sum", np.add, x) if _is_items(x) else np.sum(array_of(x), _axis(axis), keepdims=keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Over axes of an array; or of several arrays, 0 over none."""
    if not _is_items(x):
        return np.mean(array_of(x), _axis(axis), keepdims=keepdims)
    items = list(x)
    total = _reduced("mean", np.add, items)
    return total / len(items) if items else total


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Over axes of an array; or of several arrays, 0 over none."""
    return _reduced("max", np.maximum, x) if _is_items(x) else np.max(array_of(x), _axis(axis), keepdims=keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Over axes of an array; or of several arrays, 0 over none."""
    return _reduced("min", np.minimum, x) if _is_items(x) else np.min(array_of(x), _axis(axis), keepdims=keepdims)


def matmul(x: Any, y: Any) -> Any:
    """`x @ y` of vectors and matrices."""
    return array_of(x) @ array_of(y)


def dot(x: Any, y: Any) -> Any:
    """The dot product of vectors; as `x @ y` for matrices."""
    return np.dot(array_of(x), array_of(y))


def outer(x: Any, y: Any) -> Any:
    """All products of an element of one vector and one of another."""
    return np.outer(array_of(x), array_of(y))


def einsum(spec: str, *operands: Any) -> Any:
    """Sums of products in Einstein's notation."""
    return np.einsum(spec, *map(array_of, operands))


def zeros(*shape: Any) -> Any:
    """An array of zeros."""
    return full(shape[0] if len(shape) == 1 else shape, 0.0)


def ones(*shape: Any) -> Any:
    """An array of ones."""
    return full(shape[0] if len(shape) == 1 else shape, 1.0)


def full(shape: int | Sequence[int], value: float) -> Any:
    """An array with `value` everywhere."""
    return np.full(shape, value, np.float32)


def _is_items(x: Any) -> bool:
    """Is `x` a collection of arrays rather than one?"""
    return isinstance(x, Iterable) and not hasattr(x, "__array__")


def _axis(axis: Any) -> Any:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def _reduced(what: str, fn: Any, items: Iterable[Any]) -> Any:
    result: Any = None
    for item in items:
        array = array_of(item)
        result = array if result is None else fn(result, array)
    if result is not None:
        return result
    site, shape_at = call_site(), SHAPE_OVER_NONE.get()
    shape = None if site is None or shape_at is None else shape_at(site)
    if shape is None:
        raise fail(f"{what}() of nothing: the shape of the result is not known. Use cortex.zeros(...) then.")
    return np.zeros(shape, np.float32)
