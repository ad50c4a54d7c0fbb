"""Moving data: concat, split, stack, reshape, transpose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cortex.frontend.builder import Value, builder
from cortex.frontend.pointwise import as_float, comparison, fill
from cortex.frontend.spans import fail
from cortex.ra.ir import Concat, Reshape, Slice, Transpose


def reshape(x: Value, shape: Iterable[int]) -> Value:
    """The elements in another shape; one size may be -1."""
    sizes = tuple(shape)
    what = f"reshape to {sizes} of {x.text()}"
    if not all(isinstance(n, int) for n in sizes):
        raise fail(f"{what}: a shape consists of integers.")
    count = math.prod(x.shape)
    if sizes.count(-1) == 1:
        rest = math.prod(n for n in sizes if n != -1)
        if rest == 0 or count % rest:
            raise fail(f"{what}: {count} elements do not fill rows of {rest}.")
        sizes = tuple(count // rest if n == -1 else n for n in sizes)
    if any(n < 0 for n in sizes) or math.prod(sizes) != count:
        raise fail(f"{what}: it has {count} elements, the new shape has {math.prod(sizes)}. They must be equally many.")
    return x if sizes == x.shape else builder().emit(Reshape(x.name, sizes), sizes, x, dtype=x.dtype)


def transpose(x: Value, perm: Sequence[int] | None) -> Value:
    """Permute the axes; reverse them by default."""
    rank = len(x.shape)
    order = tuple(reversed(range(rank))) if perm is None else tuple(a + rank if a < 0 else a for a in perm)
    if sorted(order) != list(range(rank)):
        raise fail(f"transpose({perm}) of {x.text()}: each of its {rank} axes must be listed once.")
    if order == tuple(range(rank)):
        return x
    return builder().emit(Transpose(x.name, order), tuple(x.shape[a] for a in order), x, dtype=x.dtype)


def concat(xs: Sequence[Value], axis: int) -> Value:
    """One after the other along `axis`, which is non-negative; truth values beside floats become 0 and 1."""
    first = xs[0]
    for x in xs[1:]:
        if len(x.shape) != len(first.shape):
            raise fail(f"concat() of {first.text()} and {x.text()}: all parts must have the same number of axes.")
        if any(m != n for i, (m, n) in enumerate(zip(first.shape, x.shape, strict=True)) if i != axis):
            raise fail(
                f"concat(axis={axis}) of {first.text()} and {x.text()}: the sizes must agree on every axis but {axis}."
            )
    if len(xs) == 1:
        return first
    if any(x.dtype == "bool" for x in xs):  # they have no memory of their own: they are joined as 0 and 1
        joined = concat([as_float(x) for x in xs], axis)
        return comparison("ne", joined, fill(0.0)) if all(x.dtype == "bool" for x in xs) else joined
    size = sum(x.shape[axis] for x in xs)
    shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
    return builder().emit(Concat(tuple(x.name for x in xs), axis), shape, *xs, dtype=first.dtype)


def slice_axes(x: Value, ranges: Sequence[tuple[int, int, int]]) -> Value:
    """x[start:stop:step, ...], one triple per axis."""
    if all((start, stop, step) == (0, n, 1) for (start, stop, step), n in zip(ranges, x.shape, strict=True)):
        return x
    shape = tuple(len(range(*r)) for r in ranges)
    return builder().emit(Slice(x.name, tuple(ranges)), shape, x, dtype=x.dtype)


def split(x: Value, parts: int | Sequence[int], axis: int) -> list[Value]:
    """Cut along `axis` into equal parts, or into parts of the given sizes."""
    total = x.shape[axis]
    if isinstance(parts, int):
        if parts < 1 or total % parts:
            raise fail(f"split({parts}) of {x.text()}: the size of axis {axis}, {total}, is not a multiple of {parts}.")
        sizes = [total // parts] * parts
    else:
        sizes = list(parts)
        if not all(isinstance(n, int) and n >= 0 for n in sizes) or sum(sizes) != total:
            shown = sum(n for n in sizes if isinstance(n, int))
            raise fail(f"split({sizes}) of {x.text()}: the sizes add up to {shown}, but axis {axis} has size {total}.")
    found: list[Value] = []
    start = 0
    for size in sizes:
        ranges = [(0, n, 1) for n in x.shape]
        ranges[axis] = (start, start + size, 1)
        found.append(slice_axes(x, ranges))
        start += size
    return found
