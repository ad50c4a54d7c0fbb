"""`x[...]`, read and written: integers, slices, None and `...` give views; tensors of integers look up.

As torch, integers are taken before tensors of integers: `x[0, :, i]` has the axes of `x[0][:, i]`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from cortex.frontend import indexing, movement, pointwise
from cortex.frontend.bounds import bounds_of
from cortex.frontend.builder import Value, builder
from cortex.frontend.facts import ABSENT, is_plain
from cortex.frontend.pointwise import arithmetic, comparison, fill
from cortex.frontend.reduction import reduce
from cortex.frontend.signals import NeedsExample
from cortex.frontend.standin import Attribute
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.content import (
    Content,
    Integers,
    as_indices,
    as_value,
    broadcast,
    cut,
    integers,
    join,
    permute,
    reshape,
)
from cortex.frontend.torch.operators.inplace import like
from cortex.frontend.torch.refusals import DYNAMIC, Unsupported
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.torch.views import Ranges, View, sliced
from cortex.ra.ir import Param

INDEX = (
    "an index must be an integer field of a node, as in table[node.word], a constant, or computed by argmax and the "
    "like from an axis that is not longer. Choose with torch.where, or compute the index when the structure is made."
)


@dataclass(frozen=True)
class Index:
    """The box that integers and slices cut, the shape it gets, and what looks up which axis of that."""

    ranges: Ranges
    shape: tuple[int, ...]
    lookups: tuple[tuple[int, Integers], ...]


def prepared(index: Any) -> Any:
    """The index as a tuple, with lists of integers, or of fields that are integers, as tensors of integers."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple(TorchTensor(_listed(item)) if isinstance(item, list) else item for item in items)


def _listed(items: list[Any]) -> Integers:
    found: list[Any] = []
    for item in items:
        if isinstance(item, Attribute) and item._cortex_sample() is ABSENT:
            raise NeedsExample(f"what '{item._cortex_name}' is")
        if isinstance(item, Attribute) and is_plain(item._cortex_sample()):
            found.append(item._cortex_index())
        elif isinstance(item, int) and not isinstance(item, bool):
            found.append(item)
        else:
            raise Unsupported("a list that indexes must consist of integers. For tensors, write x[torch.stack(list)].")
    return integers(found, (len(found),))


def meta_index(index: Any) -> Any:
    """The index for a tensor without elements: any position stands for one that is not known."""

    def item(x: Any) -> Any:
        if isinstance(x, TorchTensor):
            held = x._cortex_content()
            if not held.shape and x._cortex_meta.dtype is not torch.bool:
                return held.elements[()] if isinstance(held, Integers) and held.known else 0
            return x._cortex_meta
        return slice(*map(item, (x.start, x.stop, x.step))) if isinstance(x, slice) else x

    return tuple(map(item, index))


def _parse(x: TorchTensor, index: tuple[Any, ...]) -> Index:
    """`index`, which torch has found to fit."""
    shape = x._cortex_shape
    items = _expanded(len(shape), index)
    ranges: list[tuple[int, int, int]] = []
    position: int
    result: list[int] = []
    lookups: list[tuple[int, Integers]] = []
    for item in items:
        size = shape[len(ranges)] if len(ranges) < len(shape) else 1
        match item:
            case None:
                result.append(1)
            case bool():
                raise Unsupported(f"it is indexed with {item}. Add an axis with None.")
            case slice():
                start, stop, step = item.indices(size)
                ranges.append((start, max(start, stop), step))
                result.append(len(range(*ranges[-1])))
            case TorchTensor():
                at = whole(item)
                if at.known and not at.shape:
                    position = int(at.elements[()]) % size
                    ranges.append((position, position + 1, 1))
                    continue
                lookups.append((len(result), at))
                ranges.append((0, size, 1))
                result.append(size)
            case _:
                position = int(item) % size
                ranges.append((position, position + 1, 1))
    return Index(tuple(ranges), tuple(result), tuple(lookups))


def whole(item: TorchTensor) -> Integers:
    """A tensor of integers as what indexes."""
    held = item._cortex_content()
    if item._cortex_meta.dtype is torch.bool:
        raise Unsupported(f"it is indexed with truth values: {DYNAMIC}")
    if isinstance(held, Integers):
        return as_indices(held)
    if item._cortex_meta.dtype.is_floating_point:
        raise Unsupported(INDEX)
    return integers(_elements(held), held.shape)


def _elements(x: Value) -> list[Value]:
    """The elements of what is computed, one by one."""
    flat = movement.reshape(x, (math.prod(x.shape),))
    return [movement.reshape(movement.slice_axes(flat, ((i, i + 1, 1),)), ()) for i in range(flat.shape[0])]


def _expanded(rank: int, index: tuple[Any, ...]) -> list[Any]:
    """`index` with `...` and missing axes written out as full slices."""
    used = sum(item is not None and item is not Ellipsis for item in index)
    missing = [slice(None)] * (rank - used)
    if not any(item is Ellipsis for item in index):
        return [*index, *missing]
    at = next(i for i, item in enumerate(index) if item is Ellipsis)
    return [*index[:at], *missing, *index[at + 1 :]]


def _getitem(input: TorchTensor, index: Any) -> View | Content:
    parsed = _parse(input, index)
    view = sliced(input, parsed.ranges, parsed.shape)
    return look_up(view.read(input._cortex_content()), parsed.lookups, wraps=True) if parsed.lookups else view


def look_up(x: Content, lookups: tuple[tuple[int, Integers], ...], *, wraps: bool = False) -> Content:
    """`x` with axes replaced by what tensors of integers pick from them; negative ones count from the end if `wraps`.

    The indices broadcast. Their axes come where the looked-up axes are if these are neighbours, else first.
    """
    axes = [axis for axis, _ in lookups]
    arrays = np.broadcast_arrays(*(each.elements for _, each in lookups))
    rest = [axis for axis in range(len(x.shape)) if axis not in axes]
    front = permute(x, (*axes, *rest))
    rows = [_row(front, [cast(Any, a)[place] for a in arrays], wraps) for place in np.ndindex(arrays[0].shape)]
    shape = tuple(x.shape[axis] for axis in rest)
    if rows:
        picked = reshape(join([reshape(row, (1, *shape)) for row in rows], 0), (*arrays[0].shape, *shape))
    else:
        picked = reshape(cut(front, tuple((0, 0, 1) for _ in front.shape)), (*arrays[0].shape, *shape))
    before = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    rank = arrays[0].ndim
    order = (*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(shape)))
    return permute(picked, order)


def _row(x: Content, index: list[int | Value], wraps: bool = False) -> Content:
    """x[index], one position for each of the first axes."""
    for position in index:
        if isinstance(position, Value) and position.dtype != "i64":
            x = _picked(as_value(x), position, wraps)
        elif isinstance(position, Value):
            if isinstance(x, Integers):
                raise Unsupported("a table of integers is indexed with a field of a node. Make it a field of the node.")
            x = indexing.lookup(x, position)
        else:
            at = _position(position, x.shape[0], wraps)
            x = reshape(cut(x, ((at, at + 1, 1), *((0, n, 1) for n in x.shape[1:]))), x.shape[1:])
    return x


def _picked(x: Value, position: Value, wraps: bool) -> Value:
    """The row at a computed position: the sum of all rows, of which the others count as 0."""
    hit = comparison("eq", count_up(x.shape[0]), _computed(position, x.shape[0], wraps))
    rows = movement.reshape(hit, (x.shape[0], *(1 for _ in x.shape[1:])))
    return reduce("add", pointwise.where(rows, x, fill(0.0)), (0,))


def _computed(position: Value, size: int, wraps: bool) -> Value:
    """A computed position, if it cannot lie outside of an axis of this size."""
    bounds = bounds_of(position)
    if bounds is None or not (-size if wraps else 0) <= bounds[0] <= bounds[1] < size:
        known = "" if bounds is None else f" It lies from {bounds[0]:g} to {bounds[1]:g}, and the axis has size {size}."
        raise Unsupported(INDEX + known)
    if bounds[0] >= 0:
        return position
    return pointwise.where(comparison("lt", position, fill(0.0)), arithmetic("add", position, fill(size)), position)


def _position(index: int, size: int, wraps: bool) -> int:
    """A constant index of an axis, which `x[...]` may count from the end; other functions refuse negative ones."""
    if not (-size if wraps else 0) <= index < size:
        accepted = f"from {-size if wraps else 0} to {size - 1} are accepted" if size else "none is accepted"
        raise Unsupported(f"index {index} is out of bounds: the axis has size {size}, so {accepted}.")
    return index % size


def _setitem(input: TorchTensor, index: Any, value: Any) -> None:
    new = new_content(value)
    mask = index[0] if len(index) == 1 and isinstance(index[0], TorchTensor) else None
    if mask is not None and mask._cortex_meta.dtype is torch.bool:
        _set_where(input, mask, new)
        return
    parsed = _parse(input, index)
    view = sliced(input, parsed.ranges, parsed.shape)
    target = TorchTensor(view)
    if not parsed.lookups:
        target._cortex_assign(like(_fitted(new, parsed.shape), input))
        return
    if len(parsed.lookups) > 1:
        raise Unsupported("elements at several tensors of integers are set. Set one axis at a time.")
    ((axis, at),) = parsed.lookups
    target._cortex_assign(like(put(target._cortex_value(), axis, at, new), input))


def put(x: Value, axis: int, at: Integers, new: Content, accumulate: bool = False) -> Value:
    """`x` with what is `at` positions of an axis set to `new`, or increased by it, one position after the other."""
    parts = _fitted(new, (*x.shape[:axis], *at.shape, *x.shape[axis + 1 :]))
    for number, place in enumerate(itertools.product(*map(range, at.shape))):
        whole = (*((0, n, 1) for n in x.shape[:axis]), *((p, p + 1, 1) for p in place))
        each = cut(parts, (*whole, *((0, n, 1) for n in x.shape[axis + 1 :])))
        one = as_value(reshape(each, (*x.shape[:axis], 1, *x.shape[axis + 1 :])))
        hit = positions_equal(x.shape, axis, list(at.elements.flat)[number])
        x = pointwise.where(hit, arithmetic("add", x, one) if accumulate else one, x)
    return x


def new_content(value: Any) -> Content:
    """What a tensor or a number is set to."""
    if isinstance(value, TorchTensor):
        return value._cortex_content()
    if isinstance(value, int) and not isinstance(value, bool):
        return integers([value], ())
    return value_of(value)


def _fitted(x: Content, shape: tuple[int, ...]) -> Content:
    """`x` broadcast to `shape`; torch drops leading axes of size 1."""
    while len(x.shape) > len(shape) and x.shape[0] == 1:
        x = reshape(x, x.shape[1:])
    return broadcast(x, shape)


def _set_where(input: TorchTensor, mask: TorchTensor, new: Content) -> None:
    if new.shape not in ((), (1,)):
        raise Unsupported(f"several values are set where a mask is true: {DYNAMIC}")
    condition = mask._cortex_value()
    extra = len(input._cortex_shape) - len(condition.shape)
    condition = movement.reshape(condition, (*condition.shape, *(1,) * extra))
    value = movement.reshape(as_value(new), ())
    input._cortex_assign(like(pointwise.where(condition, value, input._cortex_value()), input))


def positions_equal(shape: tuple[int, ...], axis: int, position: int | Value) -> Value:
    """Truth values that broadcast to `shape`: is the position along `axis` this one?"""
    where = places_of(integers([position], (1,)), shape[axis], wraps=True)
    hit = comparison("eq", count_up(shape[axis]), where)
    return movement.reshape(hit, tuple(n if i == axis else 1 for i, n in enumerate(shape)))


def places_of(at: Integers, size: int, *, wraps: bool = False) -> Value:
    """Indices of an axis as numbers to compare with; read from a table, so that fields outside the axis are refused."""
    places = count_up(size)
    found: list[Any] = []
    for e in at.elements.flat:
        if isinstance(e, int):
            found.append(_position(e, size, wraps))
        else:
            found.append(indexing.lookup(places, e) if e.dtype == "i64" else _computed(e, size, wraps))
    return as_value(integers(found, at.shape))


def count_up(size: int) -> Value:
    """0, 1, ..., size - 1."""
    if size <= 1:
        return fill(0.0, (size,))
    b = builder()
    return b.emit(Param(b.knowledge.weights.equal_constant(np.arange(size, dtype=np.float32))), (size,))


def _index_select(input: TorchTensor, dim: int, index: TorchTensor) -> Content:
    at = whole(index)
    return look_up(
        input._cortex_content(), ((dim % len(input._cortex_shape), integers(at.elements.flat, (at.elements.size,))),)
    )


def gather(input: TorchTensor, dim: int, index: TorchTensor, sparse_grad: bool = False) -> Content:
    """result[..., i, ...] = input[..., index[..., i, ...], ...] at every place of `index`."""
    held, at = input._cortex_content(), whole(index)
    axis = dim % len(held.shape)
    picked: list[Content] = []
    for place in np.ndindex(at.shape):
        position: Any = at.elements[place]
        line = cut(
            held, tuple((0, n, 1) if i == axis else (place[i], place[i] + 1, 1) for i, n in enumerate(held.shape))
        )
        picked.append(reshape(_row(reshape(line, (held.shape[axis],)), [position]), (1,)))
    return reshape(join(picked, 0), at.shape)


def one_hot(tensor: TorchTensor, num_classes: int = -1) -> Value:
    """1 at the class, 0 elsewhere."""
    if num_classes < 0:
        raise Unsupported("without num_classes it depends on values how many there are. Give num_classes.")
    at = places_of(whole(tensor), num_classes)
    return pointwise.as_float(comparison("eq", movement.reshape(at, (*at.shape, 1)), count_up(num_classes)))


def _embedding(
    weight: TorchTensor, indices: TorchTensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Content:  # fmt: skip
    """Rows of a table; `padding_idx` and the rest matter in training only."""
    return look_up(weight._cortex_content(), ((0, whole(indices)),))


def _renormalized(input: TorchTensor, *_: Any) -> Content:
    raise Unsupported("max_norm changes the table whenever it is read. Scale its rows once and leave max_norm out.")


def _embedding_bag(
    input: TorchTensor, weight: TorchTensor, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Value:  # fmt: skip
    """Rows of a table, summed or averaged, or their largest elements, over the last axis of the indices."""
    if any(given is not None for given in (offsets, max_norm, per_sample_weights, padding_idx)):
        raise Unsupported("bags of equal length are accepted: a matrix of indices, without offsets and weights.")
    rows = as_value(look_up(weight._cortex_content(), ((0, whole(input)),)))
    found = reduce("max" if mode == "max" else "add", rows, (1,))
    return arithmetic("div", found, fill(rows.shape[1])) if mode == "mean" else found


def _index(input: TorchTensor, indices: list[TorchTensor | None]) -> Content:
    lookups = tuple((axis, whole(at)) for axis, at in enumerate(indices) if at is not None)
    return look_up(input._cortex_content(), lookups, wraps=True)


RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("index.Tensor", "_unsafe_index"), _index), "index_select": _index_select, "gather": gather,
    "one_hot": one_hot, "embedding": _embedding, "embedding_renorm": _renormalized,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Tensor.__getitem__": _getitem, "Tensor.__setitem__": _setitem, "F.embedding_bag": _embedding_bag,
}  # fmt: skip
