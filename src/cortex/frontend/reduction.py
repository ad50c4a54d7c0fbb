"""Reductions over axes of a value, and what is built from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from cortex.frontend.builder import Value, builder
from cortex.frontend.movement import reshape
from cortex.frontend.pointwise import arithmetic, as_float, broadcast_shapes, fill, unary
from cortex.frontend.spans import fail
from cortex.ra.ir import Reduce

ReduceFn = Literal["add", "max", "min"]
Axis = int | Iterable[int] | None


def reduce(fn: ReduceFn, x: Value, axes: tuple[int, ...]) -> Value:
    """Reduce over non-negative, increasing axes."""
    x = as_float(x)
    if not axes:
        return x
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return builder().emit(Reduce(fn, x.name, axes), shape, x)


def axis_reduction(what: str, fn: ReduceFn, x: Value, axis: Axis, keepdims: bool) -> Value:
    """`cortex.sum(x, axis=...)` and its like; `axis=None` means all axes."""
    axes = normalize_axes(what, x, axis)
    if fn != "add" and any(x.shape[a] == 0 for a in axes):
        raise fail(f"{what}() of {x.text()}: there is nothing to reduce along an axis of size 0.")
    result = reduce(fn, x, axes)
    return reshape(result, tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else result


def mean(x: Value, axis: Axis, keepdims: bool) -> Value:
    """The mean over axes."""
    axes = normalize_axes("mean", x, axis)
    count = math.prod(x.shape[a] for a in axes)
    if not count:
        raise fail(f"mean() of {x.text()}: there is nothing to average along an axis of size 0.")
    return arithmetic("div", axis_reduction("mean", "add", x, axes, keepdims), fill(count))


def softmax(x: Value, axis: int) -> Value:
    """exp(x) / sum(exp(x)) along an axis, shifted by the maximum so that it does not overflow."""
    axes = normalize_axes("softmax", x, axis)
    shifted = arithmetic("sub", x, axis_reduction("softmax", "max", x, axes, True))
    powers = unary("exp", shifted)
    return arithmetic("div", powers, axis_reduction("softmax", "add", powers, axes, True))


def layer_norm(x: Value, weight: Value | None, bias: Value | None, eps: float) -> Value:
    """(x - mean) / sqrt(variance + eps) along the last axis, then scaled and shifted."""
    if not x.shape:
        raise fail("layer_norm() of a scalar: it normalizes along the last axis, so x must be at least a vector.")
    centred = arithmetic("sub", x, mean(x, -1, True))
    variance = mean(arithmetic("mul", centred, centred), -1, True)
    result = arithmetic("div", centred, unary("sqrt", arithmetic("add", variance, fill(eps))))
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        if broadcast_shapes("layer_norm()", result, value) != x.shape:
            raise fail(f"layer_norm() of {x.text()}: its {name} is {value.text()}; it must have shape {x.shape[-1:]}.")
        result = arithmetic("mul" if name == "weight" else "add", result, value)
    return result


def normalize_axes(what: str, x: Value, axis: Axis) -> tuple[int, ...]:
    """`axis` as increasing, non-negative numbers."""
    if axis is None:
        return tuple(range(len(x.shape)))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(sorted({normalize_axis(what, x, a) for a in axes}))


def normalize_axis(what: str, x: Value, axis: int, extra: int = 0) -> int:
    """One axis as a non-negative number; `extra` is 1 where the result has one more axis than `x`."""
    rank = len(x.shape) + extra
    if not isinstance(axis, int) or not -rank <= axis < rank:
        accepted = f"from {-rank} to {rank - 1}" if rank else "none: it is a scalar"
        raise fail(f"{what}(axis={axis!r}) of {x.text()}: the axis is out of range; accepted are {accepted}.")
    return axis % rank
