"""Writing at positions: scatter, index_add and their like, as choices for every element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import Value
from cortex.frontend.elementary import scaled
from cortex.frontend.pointwise import arithmetic, comparison
from cortex.frontend.torch.content import Content, Integers, as_value, cut, integers, reshape
from cortex.frontend.torch.operators.indexing import count_up, new_content, places_of, put, whole
from cortex.frontend.torch.refusals import DYNAMIC, Unsupported
from cortex.frontend.torch.tensor import TorchTensor

Combine = Callable[[Value, Value], Value]
COMBINE: dict[str, Combine] = {
    "set": lambda x, new: new,
    **dict.fromkeys(("add", "sum"), lambda x, new: arithmetic("add", x, new)),
    **dict.fromkeys(("multiply", "prod"), lambda x, new: arithmetic("mul", x, new)),
    "amax": lambda x, new: arithmetic("max", x, new), "amin": lambda x, new: arithmetic("min", x, new),
}  # fmt: skip


def _scatter(input: TorchTensor, dim: int, index: TorchTensor, src: TorchTensor, *, reduce: str = "set") -> Value:
    """Set where `index`, along `dim`, says; it must be as large as `input` along the other axes."""
    new = new_content(src)
    held, at = input._cortex_value(), whole(index)
    axis = dim % max(len(held.shape), 1)
    if any(m != n for i, (m, n) in enumerate(zip(at.shape, held.shape, strict=True)) if i != axis):
        raise Unsupported(f"an index of shape {at.shape} for a tensor of shape {held.shape}: all but `dim` must agree.")
    line = tuple(n if i == axis else 1 for i, n in enumerate(held.shape))
    places = movement.reshape(count_up(held.shape[axis]), line)
    for k in range(at.shape[axis]):
        box = tuple((k, k + 1, 1) if i == axis else (0, n, 1) for i, n in enumerate(at.shape))
        chosen = places_of(Integers(at.elements[tuple(slice(*r) for r in box)]), held.shape[axis])
        each = as_value(cut(new, box) if new.shape else new)
        held = pointwise.where(comparison("eq", places, chosen), COMBINE[reduce](held, each), held)
    return held


def _scatter_add(input: TorchTensor, dim: int, index: TorchTensor, src: TorchTensor) -> Value:
    return _scatter(input, dim, index, src, reduce="sum")


def _scatter_reduce(
    input: TorchTensor, dim: int, index: TorchTensor, src: TorchTensor, reduce: str, *, include_self: bool = True
) -> Value:
    if not include_self or reduce not in COMBINE:
        raise Unsupported(
            f"reduce={reduce!r}, include_self={include_self}: sums, products and extremes of all elements."
        )
    return _scatter(input, dim, index, src, reduce=reduce)


def _along(x: TorchTensor, dim: int, index: TorchTensor, new: Content, accumulate: bool = False) -> Value:
    at = whole(index)
    return put(
        x._cortex_value(), dim % len(x._cortex_shape), integers(at.elements.flat, (at.elements.size,)), new, accumulate
    )


def _index_add(input: TorchTensor, dim: int, index: TorchTensor, source: TorchTensor, *, alpha: float = 1) -> Value:
    return _along(input, dim, index, scaled(source._cortex_value(), alpha), True)


def _index_copy(input: TorchTensor, dim: int, index: TorchTensor, source: TorchTensor) -> Value:
    return _along(input, dim, index, source._cortex_content())


def _index_fill(input: TorchTensor, dim: int, index: TorchTensor, value: Any) -> Value:
    return _along(input, dim, index, new_content(value))


def _index_put(
    input: TorchTensor, indices: list[TorchTensor | None], values: TorchTensor, accumulate: bool = False
) -> Value:
    given = [(axis, at) for axis, at in enumerate(indices) if at is not None]
    if len(given) != 1 or given[0][1]._cortex_meta.dtype is torch.bool:
        raise Unsupported(f"elements at one tensor of integers can be set: {DYNAMIC}")
    axis, at = given[0]
    new = values._cortex_content()
    return put(input._cortex_value(), axis, whole(at), new if new.shape != (1,) else reshape(new, ()), accumulate)


RULES: dict[str, Callable[..., Any]] = {
    "scatter": _scatter, "scatter_add": _scatter_add, "scatter_reduce": _scatter_reduce,
    "index_add": _index_add, "index_copy": _index_copy, "index_fill": _index_fill, "index_put": _index_put,
}  # fmt: skip
