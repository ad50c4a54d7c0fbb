"""Convolution and pooling over few positions: every place of the window is a slice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cortex.frontend import contraction, movement, pointwise
from cortex.frontend.builder import Value, builder
from cortex.frontend.pointwise import arithmetic, comparison, fill
from cortex.frontend.reduction import reduce
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.refusals import GRIDS, Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.ra.ir import Param

MOST_PLACES = 256
"""Places of a window, or positions of an adaptive one, that are written out."""


def _padded(x: Value, amounts: Sequence[int], value: float) -> Value:
    """`x` with so many positions before and after each of its last axes."""
    for i, amount in enumerate(amounts):
        axis = len(x.shape) - len(amounts) + i
        if amount:
            side = fill(value, (*x.shape[:axis], amount, *x.shape[axis + 1 :]))
            x = movement.concat([side, x, side], axis)
    return x


def _windows(
    x: Value, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], sizes: Sequence[int]
) -> list[Value]:
    """For each place of the window, what lies there: `sizes` positions along the last axes."""
    if math.prod(kernel) > MOST_PLACES:
        raise Unsupported(f"a window of {math.prod(kernel)} places; {MOST_PLACES} at most are accepted.")
    lead = [(0, n, 1) for n in x.shape[: len(x.shape) - len(kernel)]]
    found = []
    for place in itertools.product(*map(range, kernel)):
        starts = [p * d for p, d in zip(place, dilation, strict=True)]
        ranges = [(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, stride, strict=True)]
        found.append(movement.slice_axes(x, [*lead, *ranges]))
    return found


def _sizes(x: Value, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """How many positions the window has along each of the last axes."""
    own = x.shape[len(x.shape) - len(kernel) :]
    return [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(own, kernel, stride, dilation, strict=True)]


def _convolution(
    input: TorchTensor, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int,
) -> Value:  # fmt: skip
    """One product of the weights with all windows side by side."""
    if transposed:
        raise Unsupported(GRIDS)
    w = value_of(weight)
    rank = len(w.shape) - 2
    stride, padding, dilation = (
        list(given) * rank if len(given) == 1 else list(given) for given in (stride, padding, dilation)
    )
    x = _padded(value_of(input), padding, 0.0)
    sizes = _sizes(x, w.shape[2:], stride, dilation)
    parts = zip(movement.split(x, groups, 1), movement.split(w, groups, 0), strict=True)
    found = [_products(_windows(part, w.shape[2:], stride, dilation, sizes), own, sizes) for part, own in parts]
    result = movement.concat(found, 1)
    if bias is None:
        return result
    return arithmetic("add", result, movement.reshape(value_of(bias), (w.shape[0], *(1 for _ in sizes))))


def _products(windows: list[Value], w: Value, sizes: Sequence[int]) -> Value:
    """`w` (out, in, places...) times windows (batch, in, positions...)."""
    batch, positions = windows[0].shape[0], math.prod(sizes)
    beside = movement.concat(windows, 1)
    rows = movement.reshape(movement.transpose(w, (0, *range(2, len(w.shape)), 1)), (w.shape[0], beside.shape[1]))
    if batch == positions == 1:
        found = contraction.contract("jk,k->j", rows, movement.reshape(beside, (beside.shape[1],)))
    elif batch == 1:
        found = contraction.contract("jk,ki->ji", rows, movement.reshape(beside, (beside.shape[1], positions)))
    else:
        columns = movement.reshape(beside, (batch, beside.shape[1], positions))
        found = contraction.contract("jk,nki->nji", rows, columns)
    return movement.reshape(found, (batch, w.shape[0], *sizes))


def _settled(given: Sequence[int], rank: int) -> list[int]:
    return list(given) * rank if len(given) == 1 else list(given)


def _average(
    input: TorchTensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Value:  # fmt: skip
    kernel = _settled(kernel_size, 2)
    steps, around = _settled(stride or kernel, 2), _settled(padding, 2)
    if ceil_mode or (any(around) and not count_include_pad):
        raise Unsupported("ceil_mode and count_include_pad=False are not known. Leave them out, or pad first.")
    x = _padded(value_of(input), around, 0.0)
    windows = _windows(x, kernel, steps, (1, 1), _sizes(x, kernel, steps, (1, 1)))
    total = windows[0]
    for each in windows[1:]:
        total = arithmetic("add", total, each)
    return arithmetic("div", total, fill(divisor_override or math.prod(kernel)))


def _largest(
    input: TorchTensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,), ceil_mode: bool = False,
) -> tuple[Value, Value]:  # fmt: skip
    """The largest in each window, and its place; the last NaN, as in torch."""
    kernel = _settled(kernel_size, 2)
    steps, around, apart = _settled(stride or kernel, 2), _settled(padding, 2), _settled(dilation, 2)
    if ceil_mode:
        raise Unsupported("ceil_mode=True is not known. Leave it out, or pad first.")
    own = value_of(input)
    x = _padded(own, around, -math.inf)
    sizes = _sizes(x, kernel, steps, apart)
    best, at = None, fill(0.0)
    places = itertools.product(*map(range, kernel))
    for place, each in zip(places, _windows(x, kernel, steps, apart, sizes), strict=True):
        corner = [p * d - a for p, d, a in zip(place, apart, around, strict=True)]
        where = _flat_positions(corner, steps, sizes, own.shape[-1])
        if best is None:
            best, at = each, pointwise.broadcast_to(where, each.shape)
            continue
        better = pointwise.logical("or", comparison("gt", each, best), comparison("ne", each, each))
        best, at = arithmetic("max", best, each), pointwise.where(better, where, at)
    assert best is not None
    return best, at


def _flat_positions(corner: Sequence[int], stride: Sequence[int], sizes: Sequence[int], width: int) -> Value:
    rows, columns = (c + s * np.arange(n) for c, s, n in zip(corner, stride, sizes, strict=True))
    return _constant((rows[:, None] * width + columns[None, :]).astype(np.float32))


def _constant(array: np.ndarray[Any, Any]) -> Value:
    if array.min() == array.max():
        return fill(float(array.flat[0]), array.shape)
    b = builder()
    return b.emit(Param(b.knowledge.weights.equal_constant(array)), array.shape)


def _regions(x: Value, output_size: Sequence[int]) -> tuple[list[int], list[list[tuple[int, int, int]]]]:
    """Of every position of the result, the box that it is computed from."""
    rank = len(output_size)
    own = x.shape[len(x.shape) - rank :]
    ends = [[(i * n // m, -(-(i + 1) * n // m), 1) for i in range(m)] for n, m in zip(own, output_size, strict=True)]
    if math.prod(output_size) > MOST_PLACES:
        raise Unsupported(f"{math.prod(output_size)} positions; {MOST_PLACES} at most are accepted.")
    lead = [(0, n, 1) for n in x.shape[: len(x.shape) - rank]]
    return list(own), [[*lead, *box] for box in itertools.product(*ends)]


def _adaptive(input: TorchTensor, output_size: Sequence[int], one: Callable[[Value, tuple[int, ...]], Value]) -> Value:
    x = value_of(input)
    rank = len(output_size)
    axes = tuple(range(len(x.shape) - rank, len(x.shape)))
    lead = x.shape[: len(x.shape) - rank]
    found = [
        movement.reshape(one(movement.slice_axes(x, box), axes), (*lead, 1)) for box in _regions(x, output_size)[1]
    ]
    return movement.reshape(movement.concat(found, len(lead)), (*lead, *output_size))


def _mean_of(x: Value, axes: tuple[int, ...]) -> Value:
    return arithmetic("div", reduce("add", x, axes), fill(math.prod(x.shape[a] for a in axes)))


def _adaptive_average(input: TorchTensor, output_size: Sequence[int]) -> Value:
    return _adaptive(input, output_size, _mean_of)


def _adaptive_largest(input: TorchTensor, output_size: Sequence[int]) -> tuple[Value, Value]:
    x = value_of(input)
    rank = len(output_size)
    lead, own = x.shape[: len(x.shape) - rank], x.shape[len(x.shape) - rank :]
    numbers = np.arange(math.prod(own), dtype=np.float32).reshape(own)
    places = []
    for box in _regions(x, output_size)[1]:
        part = movement.slice_axes(x, box)
        flat = movement.reshape(part, (*lead, math.prod(part.shape[len(lead) :])))
        best = movement.reshape(reduce("max", flat, (len(lead),)), (*lead, 1))
        found = pointwise.logical("or", comparison("eq", flat, best), comparison("ne", flat, flat))
        where = _constant(numbers[tuple(slice(*r) for r in box[len(lead) :])].reshape(-1))
        least = reduce("min", pointwise.where(found, where, fill(float(numbers.max()))), (len(lead),))
        places.append(movement.reshape(least, (*lead, 1)))
    values = _adaptive(input, output_size, lambda x, axes: reduce("max", x, axes))
    return values, movement.reshape(movement.concat(places, len(lead)), (*lead, *output_size))


RULES: dict[str, Callable[..., Any]] = {
    "convolution": _convolution, "avg_pool2d": _average, "max_pool2d_with_indices": _largest,
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d"), _adaptive_average),
    "adaptive_max_pool2d": _adaptive_largest,
}  # fmt: skip
