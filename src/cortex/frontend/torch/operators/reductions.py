"""Reductions over dimensions: sums, extremes, norms, variances, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch

from cortex.frontend import movement, pointwise, reduction
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import arithmetic, comparison, fill, unary
from cortex.frontend.power import power
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.operators.indexing import count_up
from cortex.frontend.torch.refusals import CPU, Unsupported
from cortex.frontend.torch.tensor import TorchTensor

Dims = int | list[int] | tuple[int, ...] | None
Extreme = Literal["max", "min"]
MOST_STEPS = 256
"""Elements along an axis that are taken one after the other."""


def axes_of(x: Value, dim: Dims) -> tuple[int, ...]:
    """`dim` as increasing, non-negative numbers; nothing stands for all."""
    rank = len(x.shape)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(rank))
    return tuple(sorted({d % max(rank, 1) for d in ((dim,) if isinstance(dim, int) else dim)})) if rank else ()


def reduced(fn: reduction.ReduceFn, x: Value, axes: tuple[int, ...], keepdim: bool) -> Value:
    """Reduce over axes, which stay with size 1 if `keepdim`."""
    result = reduction.reduce(fn, x, axes)
    if not keepdim:
        return result
    return movement.reshape(result, tuple(1 if i in axes else n for i, n in enumerate(x.shape)))


def check_type(dtype: torch.dtype | None) -> None:
    """Refuse a result of another type than float32."""
    if dtype not in (None, torch.float32):
        raise Unsupported(f"dtype={dtype}: {CPU}")


def _sum(input: TorchTensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    check_type(dtype)
    x = value_of(input)
    return reduced("add", x, axes_of(x, dim), keepdim)


def mean(input: TorchTensor, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """The mean over dimensions; NaN over none, as torch says."""
    check_type(dtype)
    x = value_of(input)
    axes = axes_of(x, dim)
    count = math.prod(x.shape[a] for a in axes)
    return arithmetic("div", reduced("add", x, axes, keepdim), fill(count))


def _amax(fn: Extreme) -> Callable[..., Value]:
    def run(input: TorchTensor, dim: Dims = (), keepdim: bool = False) -> Value:
        x = value_of(input)
        return reduced(fn, x, axes_of(x, dim), keepdim)

    return run


def _largest(fn: Extreme) -> Callable[..., Value]:
    return lambda input: _amax(fn)(input)


def _along(fn: Extreme) -> Callable[..., Any]:
    """`max` along a dimension, with positions."""

    def run(input: TorchTensor, dim: int, keepdim: bool = False) -> Any:
        x = value_of(input)
        return reduced(fn, x, axes_of(x, dim), keepdim), _position(fn, x, dim, keepdim)

    return run


def _position(fn: Extreme, x: Value, dim: int, keepdim: bool) -> Value:
    """The first position of the largest or smallest element, or of the first NaN, as a float."""
    if not x.shape:
        return fill(0.0)
    axis = dim % len(x.shape)
    best = reduced(fn, x, (axis,), True)
    places = movement.reshape(count_up(x.shape[axis]), tuple(n if i == axis else 1 for i, n in enumerate(x.shape)))
    found = pointwise.logical("or", comparison("eq", x, best), comparison("ne", x, x))
    candidates = pointwise.where(found, places, fill(float(x.shape[axis] - 1)))  # some place is found
    return reduced("min", candidates, (axis,), keepdim)


def _arg(fn: Extreme) -> Callable[..., Value]:
    def run(input: TorchTensor, dim: int | None = None, keepdim: bool = False) -> Value:
        x = value_of(input)
        if dim is not None:
            return _position(fn, x, dim, keepdim)
        found = _position(fn, movement.reshape(x, (math.prod(x.shape),)), 0, False)
        return movement.reshape(found, (1,) * len(x.shape)) if keepdim else found

    return run


def _every(fn: Extreme) -> Callable[..., Value]:
    """`all` and `any`: the smallest and the largest of 0 and 1."""

    def run(input: TorchTensor, dim: Dims = None, keepdim: bool = False) -> Value:
        x = value_of(input)
        truth = x if x.dtype == "bool" else comparison("ne", x, fill(0.0))
        axes = axes_of(x, dim)
        if any(x.shape[a] == 0 for a in axes):
            raise Unsupported("there is nothing to look at along a dimension of size 0.")
        return comparison("ne", reduced(fn, pointwise.as_float(truth), axes, keepdim), fill(0.0))

    return run


def _prod(input: TorchTensor, dim: int | None = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """One multiplication after the other."""
    check_type(dtype)
    x = pointwise.as_float(value_of(input))
    if dim is None:
        x, dim = movement.reshape(x, (math.prod(x.shape),)), 0
    if not x.shape:
        return x
    axis = dim % len(x.shape)
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    result = fill(1.0, shape)
    for each in movement.split(x, [1] * x.shape[axis], axis):
        result = arithmetic("mul", result, each)
    return result if keepdim else movement.reshape(result, (*shape[:axis], *shape[axis + 1 :]))


def softmax(input: TorchTensor, dim: int, dtype: torch.dtype | None = None) -> Value:
    """exp(x) / sum(exp(x)) along a dimension."""
    check_type(dtype)
    x = value_of(input)
    return reduction.softmax(x, dim) if x.shape else fill(1.0)


def log_softmax(input: TorchTensor, dim: int, dtype: torch.dtype | None = None) -> Value:
    """x - log(sum(exp(x))) along a dimension."""
    check_type(dtype)
    x = value_of(input)
    if not x.shape:
        return fill(0.0)
    axes = axes_of(x, dim)
    shifted = arithmetic("sub", x, reduced("max", x, axes, True))
    return arithmetic("sub", shifted, unary("log", reduced("add", unary("exp", shifted), axes, True)))


def _logsumexp(input: TorchTensor, dim: Dims, keepdim: bool = False) -> Value:
    """Where the largest is infinite, nothing is shifted, so that it stays infinite and is not NaN."""
    x = value_of(input)
    axes = axes_of(x, dim)
    top = reduced("max", x, axes, True)
    finite = comparison("lt", unary("abs", top), fill(math.inf))
    shift = pointwise.where(finite, top, fill(0.0))
    total = unary("log", reduced("add", unary("exp", arithmetic("sub", x, shift)), axes, True))
    result = arithmetic("add", total, shift)
    if keepdim:
        return result
    return movement.reshape(result, tuple(n for i, n in enumerate(x.shape) if i not in axes))


def vector_norm(
    input: TorchTensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """The p-norm of all elements along dimensions."""
    check_type(dtype)
    x = value_of(input)
    axes = axes_of(x, dim)
    if ord == 2:
        return unary("sqrt", reduced("add", arithmetic("mul", x, x), axes, keepdim))
    size = unary("abs", x)
    if ord == math.inf:
        return reduced("max", size, axes, keepdim)
    if ord == -math.inf:
        return reduced("min", size, axes, keepdim)
    if ord == 0:
        return reduced("add", pointwise.as_float(comparison("ne", x, fill(0.0))), axes, keepdim)
    if ord == 1:
        return reduced("add", size, axes, keepdim)
    return power(reduced("add", power(size, ord), axes, keepdim), 1 / ord)


def _spread(x: Value, axes: tuple[int, ...], keepdim: bool, correction: float) -> Value:
    count = math.prod(x.shape[a] for a in axes)
    middle = arithmetic("div", reduced("add", x, axes, True), fill(count))
    centred = arithmetic("sub", x, middle)
    total = reduced("add", arithmetic("mul", centred, centred), axes, keepdim)
    return arithmetic("div", total, fill(max(count - correction, 0)))


def _variance(root: bool) -> Callable[..., Value]:
    def run(input: TorchTensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Value:
        x = value_of(input)
        result = _spread(x, axes_of(x, dim), keepdim, 1 if correction is None else correction)
        return unary("sqrt", result) if root else result

    return run


def _with_mean(root: bool) -> Callable[..., Any]:
    def run(input: TorchTensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Any:
        return _variance(root)(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim)

    return run


def _both_ends(input: TorchTensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    dims: Dims = () if dim is None else dim
    return _amax("min")(input, dims, keepdim), _amax("max")(input, dims, keepdim)


def _count(input: TorchTensor, dim: Dims = None) -> Value:
    x = value_of(input)
    return reduced("add", pointwise.as_float(comparison("ne", x, fill(0.0))), axes_of(x, dim), False)


def _running(fn: Literal["add", "mul"]) -> Callable[..., Value]:
    """`cumsum` and `cumprod`: one after the other."""

    def run(input: TorchTensor, dim: int, dtype: torch.dtype | None = None) -> Value:
        check_type(dtype)
        x = pointwise.as_float(value_of(input))
        if not x.shape or not x.shape[dim]:
            return x
        axis = dim % len(x.shape)
        if x.shape[axis] > MOST_STEPS:
            raise Unsupported(f"the running value of {x.shape[axis]} elements; {MOST_STEPS} at most are accepted.")
        found: list[Value] = []
        for each in movement.split(x, [1] * x.shape[axis], axis):
            found.append(arithmetic(fn, found[-1], each) if found else each)
        return movement.concat(found, axis)

    return run


RULES: dict[str, Callable[..., Any]] = {
    "sum": _sum, "mean": mean, "prod.dim_int": _prod, "prod": lambda input, dtype=None: _prod(input, dtype=dtype),
    "max.default": _largest("max"), "min.default": _largest("min"), "max.dim": _along("max"), "min.dim": _along("min"),
    "amax": _amax("max"), "amin": _amax("min"),
    "argmax": _arg("max"), "argmin": _arg("min"), "all": _every("min"), "any": _every("max"),
    "softmax": softmax, "log_softmax": log_softmax,
    "logsumexp": _logsumexp, "linalg_vector_norm": vector_norm,
    "var.correction": _variance(False), "std.correction": _variance(True), "var_mean.correction": _with_mean(False),
    "std_mean.correction": _with_mean(True), "cumsum": _running("add"), "cumprod": _running("mul"),
    "aminmax": _both_ends, "count_nonzero": _count,
}  # fmt: skip
