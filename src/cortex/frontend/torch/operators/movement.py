"""Moving elements: views in other shapes and orders, parts, joining, repeating."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import fill
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.content import Content, broadcast, cut, join, reshape
from cortex.frontend.torch.refusals import CPU, Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.torch.views import View, permuted, repeated, reshaped, sliced


def flat(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Both `f(2, 3)` and `f((2, 3))`."""
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        return tuple(sizes[0])
    return tuple(sizes)


def _sizes(x: TorchTensor, sizes: Sequence[int]) -> tuple[int, ...]:
    """`sizes` with -1 replaced by what is left."""
    count, rest = math.prod(x._cortex_shape), math.prod(n for n in sizes if n != -1)
    return tuple((count // rest if rest else 0) if n == -1 else n for n in sizes)


def _view(input: TorchTensor, *shape: Any, size: Any = None, dtype: Any = None) -> View:
    given = flat(shape) if shape else size
    if dtype is not None or given is None or any(isinstance(n, torch.dtype) for n in given):
        raise Unsupported(f"the bytes of a tensor are read as another type: {CPU}")
    return reshaped(input, _sizes(input, given))


def _reshape(input: TorchTensor, *sizes: Any, shape: Any = None) -> View:
    return reshaped(input, _sizes(input, flat(sizes) if sizes else shape))


def _as(input: TorchTensor, other: TorchTensor) -> View:
    return reshaped(input, other._cortex_shape)


def _flatten(input: TorchTensor, start_dim: int = 0, end_dim: int = -1) -> View:
    shape = input._cortex_shape
    if not shape:
        return reshaped(input, (1,))
    start, end = start_dim % len(shape), end_dim % len(shape)
    return reshaped(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def _unflatten(input: TorchTensor, dim: int, sizes: Sequence[int]) -> View:
    shape = input._cortex_shape
    at = dim % len(shape)
    rest = math.prod(n for n in sizes if n != -1)
    filled = (shape[at] // rest if n == -1 else n for n in sizes)
    return reshaped(input, (*shape[:at], *filled, *shape[at + 1 :]))


def _unsqueeze(input: TorchTensor, dim: int) -> View:
    shape = input._cortex_shape
    at = dim % (len(shape) + 1)
    return reshaped(input, (*shape[:at], 1, *shape[at:]))


def _squeeze(input: TorchTensor, dim: Any = None) -> View:
    shape = input._cortex_shape
    rank = max(len(shape), 1)
    dims = range(rank) if dim is None else [d % rank for d in ((dim,) if isinstance(dim, int) else dim)]
    return reshaped(input, [n for i, n in enumerate(shape) if n != 1 or i not in dims])


def _permute(input: TorchTensor, *dims: Any, **named: Any) -> View:
    order = flat(dims) if dims else named["dims"]
    return permuted(input, [d % len(order) for d in order])


def _transpose(input: TorchTensor, dim0: int, dim1: int) -> View:
    rank = len(input._cortex_shape)
    if not rank:
        return reshaped(input, ())
    order = list(range(rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permuted(input, order)


def _swapaxes(input: TorchTensor, axis0: int, axis1: int) -> View:
    return _transpose(input, axis0, axis1)


def _t(input: TorchTensor) -> View:
    return permuted(input, tuple(reversed(range(len(input._cortex_shape)))))


def _last_two(input: TorchTensor) -> View:
    return _transpose(input, -2, -1)


def _movedim(input: TorchTensor, source: Any, destination: Any) -> View:
    rank = len(input._cortex_shape)
    moved, places = ([d % rank for d in ((x,) if isinstance(x, int) else x)] for x in (source, destination))
    order: list[int] = [-1] * rank
    for axis, place in zip(moved, places, strict=True):
        order[place] = axis
    rest = iter(axis for axis in range(rank) if axis not in moved)
    return permuted(input, [next(rest) if axis < 0 else axis for axis in order])


def _expand(input: TorchTensor, *sizes: Any, size: Any = None, implicit: bool = False) -> View:
    wanted = flat(sizes) if sizes else tuple(size)
    own = (1,) * (len(wanted) - len(input._cortex_shape)) + input._cortex_shape
    shape = tuple(m if n == -1 else n for m, n in zip(own, wanted, strict=True))
    return repeated(input, lambda base: broadcast(base, shape))


def _expand_as(input: TorchTensor, other: TorchTensor) -> View:
    return _expand(input, other._cortex_shape)


def _broadcast_tensors(*tensors: Any) -> tuple[View, ...]:
    shape = tuple(np.broadcast_shapes(*(x._cortex_shape for x in tensors)))
    return tuple(_expand(x, shape) for x in tensors)


def _repeat(input: TorchTensor, *repeats: Any, **named: Any) -> Content:
    times = flat(repeats) if repeats else tuple(named["repeats"])
    shape = (1,) * (len(times) - len(input._cortex_shape)) + input._cortex_shape
    apart = [n for size in shape for n in (1, size)]
    wide = [n for count, size in zip(times, shape, strict=True) for n in (count, size)]
    result = broadcast(reshape(input._cortex_content(), tuple(apart)), tuple(wide))
    return reshape(result, tuple(count * size for count, size in zip(times, shape, strict=True)))


def _tile(input: TorchTensor, *dims: Any, **named: Any) -> Content:
    times = flat(dims) if dims else tuple(named["dims"])
    return _repeat(input, (1,) * (len(input._cortex_shape) - len(times)) + times)


def _repeat_interleave(input: TorchTensor, repeats: Any, dim: int | None = None, output_size: Any = None) -> Content:
    if not isinstance(repeats, int):
        raise Unsupported("how often depends on values. Give one number.")
    held = input._cortex_content()
    if dim is None:
        held, dim = reshape(held, (math.prod(held.shape),)), 0
    at = dim % len(held.shape)
    apart = reshape(held, (*held.shape[: at + 1], 1, *held.shape[at + 1 :]))
    wide = broadcast(apart, (*held.shape[: at + 1], repeats, *held.shape[at + 1 :]))
    return reshape(wide, (*held.shape[:at], held.shape[at] * repeats, *held.shape[at + 1 :]))


def _cat(tensors: Any, dim: int = 0) -> Content:
    held = [x._cortex_content() for x in tensors]
    whole = [x for x in held if x.shape != (0,)] or held[:1]  # torch takes empty vectors beside any shape
    return join(whole, dim % len(whole[0].shape))


def _stack(tensors: Any, dim: int = 0) -> Content:
    held = [x._cortex_content() for x in tensors]
    at = dim % (len(held[0].shape) + 1)
    return join([reshape(x, (*x.shape[:at], 1, *x.shape[at:])) for x in held], at)


def _hstack(tensors: Any) -> Content:
    held = [reshape(x, (1,)) if not x.shape else x for x in (each._cortex_content() for each in tensors)]
    return join(held, 0 if len(held[0].shape) == 1 else 1)


def _vstack(tensors: Any) -> Content:
    held = (x._cortex_content() for x in tensors)
    return join([x if len(x.shape) > 1 else reshape(x, (1, math.prod(x.shape))) for x in held], 0)


def _column_stack(tensors: Any) -> Content:
    held = (x._cortex_content() for x in tensors)
    return join([x if len(x.shape) > 1 else reshape(x, (math.prod(x.shape), 1)) for x in held], 1)


def part(x: TorchTensor, axis: int, start: int, stop: int) -> View:
    """Positions start..stop-1 of an axis."""
    shape = x._cortex_shape
    ranges = tuple((start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape))
    return sliced(x, ranges, (*shape[:axis], stop - start, *shape[axis + 1 :]))


def _split(input: TorchTensor, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> tuple[View, ...]:
    axis = dim % len(input._cortex_shape)
    total = input._cortex_shape[axis]
    sizes = split_size_or_sections if split_size_or_sections is not None else named["split_size"]
    if isinstance(sizes, int):
        sizes = [min(sizes, total - start) for start in range(0, total, sizes)] if total else [0]
    stops = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return tuple(part(input, axis, stop - size, stop) for size, stop in zip(sizes, stops, strict=True))


def _split_with_sizes(input: TorchTensor, split_sizes: Any, dim: int = 0) -> tuple[View, ...]:
    return _split(input, split_sizes, dim)


def _chunk(input: TorchTensor, chunks: int, dim: int = 0) -> tuple[View, ...]:
    """Chunks of equal size, but for the last; perhaps fewer than asked for."""
    total = input._cortex_shape[dim]
    return _split(input, max(-(-total // chunks), 1), dim) if total else _split(input, [0] * chunks, dim)


def _unbind(input: TorchTensor, dim: int = 0) -> tuple[View, ...]:
    return tuple(_select(input, dim, i) for i in range(input._cortex_shape[dim]))


def _select(input: TorchTensor, dim: int, index: int) -> View:
    shape = input._cortex_shape
    axis = dim % len(shape)
    at = index % shape[axis]
    ranges = tuple((at, at + 1, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape))
    return sliced(input, ranges, (*shape[:axis], *shape[axis + 1 :]))


def _narrow(input: TorchTensor, dim: int, start: int, length: int) -> View:
    axis = dim % len(input._cortex_shape)
    first = start % input._cortex_shape[axis] if start < 0 else start
    return part(input, axis, first, first + length)


def _flip(input: TorchTensor, *dims: Any, **named: Any) -> Content:
    held = input._cortex_content()
    for dim in flat(dims) if dims else named["dims"]:
        axis = dim % len(held.shape)
        held = join([_at(held, axis, i) for i in reversed(range(held.shape[axis]))], axis)
    return held


def _at(x: Content, axis: int, position: int) -> Content:
    return cut(x, tuple((position, position + 1, 1) if i == axis else (0, n, 1) for i, n in enumerate(x.shape)))


def _reversed(input: TorchTensor) -> Content:
    return _flip(input, 0) if input._cortex_shape else input._cortex_content()


def _roll(input: TorchTensor, shifts: Any, dims: Any = None) -> Content:
    held = input._cortex_content()
    if dims is None or dims == ():
        shape = held.shape
        whole = TorchTensor(reshape(held, (math.prod(shape),)))
        return reshape(_roll(whole, shifts, 0), shape)
    for shift, dim in zip(*((x,) if isinstance(x, int) else tuple(x) for x in (shifts, dims)), strict=True):
        axis = dim % len(held.shape)
        order = [(i - shift) % held.shape[axis] for i in range(held.shape[axis])]
        held = join([_at(held, axis, i) for i in order], axis) if order else held
    return held


def _pad(input: TorchTensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    """The amounts are for the last axis first."""
    if mode != "constant" or any(n < 0 for n in pad):
        raise Unsupported(
            f"pad={tuple(pad)}, mode={mode!r}: only constant padding by non-negative amounts is accepted."
        )
    x = pointwise.as_float(value_of(input))
    for i, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = len(x.shape) - 1 - i
        sides = [fill(value or 0.0, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in (before, after)]
        pieces: list[Content] = [p for p in (sides[0], x, sides[1]) if p.shape[axis]]
        joined = join(pieces, axis)
        assert isinstance(joined, Value)
        x = joined
    return x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Tensor.view": _view, "reshape": _reshape, "Tensor.view_as": _as, "Tensor.reshape_as": _as,
    "flatten": _flatten, "ravel": lambda input: _flatten(input), "unflatten": _unflatten,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "permute": _permute,
    **dict.fromkeys(("transpose", "swapdims"), _transpose), "swapaxes": _swapaxes,
    "t": _t, "Tensor.T": _t, **dict.fromkeys(("Tensor.mT", "adjoint"), _last_two), "Tensor.H": _t,
    **dict.fromkeys(("movedim", "moveaxis"), _movedim),
    "Tensor.expand": _expand, "expand_as": _expand_as, "broadcast_to": lambda input, size: _expand(input, size),
    "torch.broadcast_tensors": _broadcast_tensors,
    "Tensor.repeat": _repeat, "tile": _tile, "repeat_interleave": _repeat_interleave,
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat), "stack": _stack,
    "hstack": _hstack, "vstack": _vstack, "column_stack": _column_stack,
    "split": _split, "split_with_sizes": _split_with_sizes, "chunk": _chunk, "unbind": _unbind, "select": _select,
    "narrow": _narrow, "flip": _flip, "Tensor.__reversed__": _reversed, "roll": _roll, "F.pad": _pad,
}  # fmt: skip
