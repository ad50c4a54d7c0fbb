"""Moving elements: views in other shapes and orders, parts, joining, repeating."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import fill
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.content import Content, Integers, broadcast, cut, join, permute, reshape
from cortex.frontend.torch.refusals import CPU, MEMORY, Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.torch.views import View, permuted, read_only, repeated, reshaped, sliced


def _view(input: TorchTensor, size: Sequence[int]) -> View:
    count, rest = math.prod(input._cortex_shape), math.prod(n for n in size if n != -1)
    return reshaped(input, [(count // rest if rest else 0) if n == -1 else n for n in size])


def _bytes(input: TorchTensor, dtype: torch.dtype) -> View:
    raise Unsupported(f"the bytes of a tensor are read as another type: {CPU}")


def _unsqueeze(input: TorchTensor, dim: int) -> View:
    shape = input._cortex_shape
    at = dim % (len(shape) + 1)
    return reshaped(input, (*shape[:at], 1, *shape[at:]))


def _squeeze(input: TorchTensor, dim: Any = None) -> View:
    shape = input._cortex_shape
    rank = max(len(shape), 1)
    dims = range(rank) if dim is None else [d % rank for d in ((dim,) if isinstance(dim, int) else dim)]
    return reshaped(input, [n for i, n in enumerate(shape) if n != 1 or i not in dims])


def _permute(input: TorchTensor, dims: Sequence[int]) -> View:
    return permuted(input, [d % len(dims) for d in dims])


def _transpose(input: TorchTensor, dim0: int, dim1: int) -> View:
    rank = len(input._cortex_shape)
    if not rank:
        return reshaped(input, ())
    order = list(range(rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permuted(input, order)


def _t(input: TorchTensor) -> View:
    return permuted(input, tuple(reversed(range(len(input._cortex_shape)))))


def _expand(input: TorchTensor, size: Sequence[int], implicit: bool = False) -> View:
    own = (1,) * (len(size) - len(input._cortex_shape)) + input._cortex_shape
    shape = tuple(m if n == -1 else n for m, n in zip(own, size, strict=True))
    return repeated(input, lambda base: broadcast(base, shape))


def _repeat(input: TorchTensor, repeats: Sequence[int]) -> Content:
    times = tuple(repeats)
    shape = (1,) * (len(times) - len(input._cortex_shape)) + input._cortex_shape
    apart = [n for size in shape for n in (1, size)]
    wide = [n for count, size in zip(times, shape, strict=True) for n in (count, size)]
    result = broadcast(reshape(input._cortex_content(), tuple(apart)), tuple(wide))
    return reshape(result, tuple(count * size for count, size in zip(times, shape, strict=True)))


def _repeat_each(input: TorchTensor, repeats: TorchTensor, dim: int | None = None, output_size: Any = None) -> Content:
    """Every position as often as a constant says for it."""
    counts, held = repeats._cortex_content(), input._cortex_content()
    if not isinstance(counts, Integers) or not counts.known:
        raise Unsupported("how often depends on values. Give numbers that are constants.")
    if dim is None:
        held, dim = reshape(held, (math.prod(held.shape),)), 0
    axis = dim % len(held.shape)
    times = [int(n) for n in counts.elements.flat]
    times = times * held.shape[axis] if len(times) == 1 else times
    if len(times) != held.shape[axis] or min(times, default=0) < 0:
        raise Unsupported(f"repeats={times} for an axis of size {held.shape[axis]}: a number for each, 0 or more.")
    order = [i for i, n in enumerate(times) for _ in range(n)]
    if not order:
        return cut(held, tuple((0, 0 if i == axis else n, 1) for i, n in enumerate(held.shape)))
    return join([_at(held, axis, i) for i in order], axis)


def _cat(tensors: Any, dim: int = 0) -> Content:
    held = [x._cortex_content() for x in tensors]
    whole = [x for x in held if x.shape != (0,)] or held[:1]  # torch takes empty vectors beside any shape
    return join(whole, dim % len(whole[0].shape))


def _stack(tensors: Any, dim: int = 0) -> Content:
    held = [x._cortex_content() for x in tensors]
    at = dim % (len(held[0].shape) + 1)
    return join([reshape(x, (*x.shape[:at], 1, *x.shape[at:])) for x in held], at)


def part(x: TorchTensor, axis: int, start: int, stop: int) -> View:
    """Positions start..stop-1 of an axis."""
    shape = x._cortex_shape
    ranges = tuple((start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape))
    return sliced(x, ranges, (*shape[:axis], stop - start, *shape[axis + 1 :]))


def _split(input: TorchTensor, split_size: int, dim: int = 0) -> list[View]:
    total = input._cortex_shape[dim]
    return _split_with_sizes(
        input, [min(split_size, total - start) for start in range(0, total, split_size)] if total else [0], dim
    )


def _split_with_sizes(input: TorchTensor, split_sizes: Sequence[int], dim: int = 0) -> list[View]:
    axis = dim % len(input._cortex_shape)
    stops = [sum(split_sizes[: i + 1]) for i in range(len(split_sizes))]
    return [part(input, axis, stop - size, stop) for size, stop in zip(split_sizes, stops, strict=True)]


def _unbind(input: TorchTensor, dim: int = 0) -> list[View]:
    return [_select(input, dim, i) for i in range(input._cortex_shape[dim])]


def _select(input: TorchTensor, dim: int, index: int) -> View:
    shape = input._cortex_shape
    axis = dim % len(shape)
    at = index % shape[axis]
    ranges = tuple((at, at + 1, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape))
    return sliced(input, ranges, (*shape[:axis], *shape[axis + 1 :]))


def _slice(input: TorchTensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> View:
    shape = input._cortex_shape
    axis = dim % len(shape)
    first, last, _ = slice(start, end, step).indices(shape[axis])
    ranges = tuple((first, max(first, last), step) if i == axis else (0, n, 1) for i, n in enumerate(shape))
    return sliced(input, ranges, [len(range(*r)) for r in ranges])


def _flip(input: TorchTensor, dims: Sequence[int]) -> Content:
    held = input._cortex_content()
    for dim in dims if held.shape else ():
        axis = dim % len(held.shape)
        if held.shape[axis]:
            held = join([_at(held, axis, i) for i in reversed(range(held.shape[axis]))], axis)
    return held


def _at(x: Content, axis: int, position: int) -> Content:
    return cut(x, tuple((position, position + 1, 1) if i == axis else (0, n, 1) for i, n in enumerate(x.shape)))


def _roll(input: TorchTensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Content:
    held = input._cortex_content()
    if not dims:
        shape = held.shape
        whole = TorchTensor(reshape(held, (math.prod(shape),)))
        return reshape(_roll(whole, shifts, [0]), shape)
    for shift, dim in zip(shifts, dims, strict=True):
        axis = dim % len(held.shape)
        order = [(i - shift) % held.shape[axis] for i in range(held.shape[axis])]
        held = join([_at(held, axis, i) for i in order], axis) if order else held
    return held


def _pad(input: TorchTensor, pad: Sequence[int], value: float = 0) -> Value:
    """The amounts are for the last axis first; negative ones cut."""
    x = pointwise.as_float(value_of(input))
    for i, amounts in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = len(x.shape) - 1 - i
        kept = (max(-amounts[0], 0), x.shape[axis] - max(-amounts[1], 0), 1)
        x = movement.slice_axes(x, [kept if j == axis else (0, n, 1) for j, n in enumerate(x.shape)])
        sides = [fill(value, (*x.shape[:axis], max(n, 0), *x.shape[axis + 1 :])) for n in amounts]
        pieces = [p for p in (sides[0], x, sides[1]) if p.shape[axis]]
        x = movement.concat(pieces, axis) if pieces else x
    return x


def _diagonal(input: TorchTensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> View:
    """Every (columns + 1)-th element of two axes in one, from where the diagonal begins."""
    rank = len(input._cortex_shape)
    first, second = dim1 % rank, dim2 % rank
    order = (*(i for i in range(rank) if i not in (first, second)), first, second)

    def read(base: Content) -> Content:
        turned = permute(base, order)
        *lead, rows, columns = turned.shape
        count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        start = max(-offset, 0) * columns + max(offset, 0)
        stop = start + (count - 1) * (columns + 1) + 1 if count else start
        return cut(reshape(turned, (*lead, rows * columns)), (*((0, n, 1) for n in lead), (start, stop, columns + 1)))

    return read_only(input, "diagonal()", read)


def _unfold(input: TorchTensor, dimension: int, size: int, step: int) -> View:
    """Windows along an axis, whose elements become the last axis."""

    def read(base: Content) -> Content:
        if not base.shape:
            return reshape(base, (1,))
        axis = dimension % len(base.shape)
        last = (base.shape[axis] - size) // step * step
        box = tuple((0, n, 1) for n in base.shape)
        each = [cut(base, (*box[:axis], (k, k + last + 1, step), *box[axis + 1 :])) for k in range(size)]
        return join([reshape(x, (*x.shape, 1)) for x in each], len(base.shape))

    return read_only(input, "unfold()", read)


def _as_strided(
    input: TorchTensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> View:
    raise Unsupported(MEMORY)


RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _view), "view.dtype": _bytes,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "permute": _permute, "transpose": _transpose, "t": _t,
    "expand": _expand, "repeat": _repeat,
    "repeat_interleave.self_Tensor": _repeat_each,
    "cat": _cat, "stack": _stack, "split.Tensor": _split, "split_with_sizes": _split_with_sizes, "unbind": _unbind,
    "select.int": _select, "slice": _slice, "flip": _flip, "roll": _roll, "constant_pad_nd": _pad,
    "diagonal": _diagonal, "unfold": _unfold, "as_strided": _as_strided,
}  # fmt: skip
