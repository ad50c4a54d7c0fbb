"""Slices sink towards the leaves, so that gates computed together become separate products.

before:  t = U @ s + b; i = t[0:H]; o = t[H:2H]; u = t[2H:3H]
after:   i = U[0:H] @ s + b[0:H]; o = U[H:2H] @ s + b[H:2H]; u = U[2H:3H] @ s + b[2H:3H]

Through a view or a lookup a slice always sinks. Through an op that computes, it sinks only if every use of that
op is a slice and no two of them overlap: then the op itself disappears and no element is computed twice.
Slices of parameters, fields and states stay: reading them costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from cortex.ra import ir
from cortex.ra.rules.graph import Graph, Range, full_range
from cortex.ra.shapes import terms


def sink_slices_into_views(g: Graph, op: ir.Op) -> ir.Op | None:
    """A slice of a view is a view of a slice."""
    if not isinstance(op, ir.Slice):
        return None
    ranges = op.ranges
    match g.op(op.x):
        case ir.Transpose(x, perm):
            return ir.Transpose(g.slice(x, tuple(ranges[perm.index(a)] for a in range(len(perm)))), perm)
        case ir.Broadcast(x):
            return ir.Broadcast(_slice_aligned(g, x, ranges), _lengths(ranges))
        case ir.Reshape(x, shape):
            inner = _through_reshape(ranges, shape, g.shape(x))
            return None if inner is None else ir.Reshape(g.slice(x, inner), _lengths(ranges))
        case ir.Concat(xs, axis):
            return _slice_concat(g, xs, axis, ranges)
        case ir.Lookup(table, index):
            return ir.Lookup(g.slice(table, (full_range(g.shape(table)[0]), *ranges)), index)
        case _:
            return None


def sink_slices_into_ops(g: Graph, op: ir.Op) -> ir.Op | None:
    """A slice of a pointwise op, a contraction or a reduction is that op on slices, if nothing else needs it."""
    if not isinstance(op, ir.Slice) or not _only_disjoint_slices(g, op.x):
        return None
    return slice_of_op(g, op)


def slice_of_op(g: Graph, op: ir.Slice) -> ir.Op | None:
    """A slice of an op that computes as that op on slices, whatever else needs the op."""
    ranges = op.ranges
    match g.op(op.x):
        case ir.Unary(fn, x):
            return ir.Unary(fn, g.slice(x, ranges))
        case ir.Cast(x, dtype):
            return ir.Cast(g.slice(x, ranges), dtype)
        case ir.Binary(fn, x, y):
            return ir.Binary(fn, _slice_aligned(g, x, ranges), _slice_aligned(g, y, ranges))
        case ir.Where(cond, x, y):
            return ir.Where(*(_slice_aligned(g, v, ranges) for v in (cond, x, y)))
        case ir.Contract(spec, x, y):
            tx, ty, out = terms(spec)
            wanted = dict(zip(out, ranges, strict=True))
            return ir.Contract(spec, _slice_letters(g, x, tx, wanted), _slice_letters(g, y, ty, wanted))
        case ir.Reduce(fn, x, axes):
            kept = iter(ranges)
            inner = tuple(full_range(n) if a in axes else next(kept) for a, n in enumerate(g.shape(x)))
            return ir.Reduce(fn, g.slice(x, inner), axes)
        case ir.OverChildren(fn, x, name):
            return ir.OverChildren(fn, g.slice(x, ranges), name)
        case _:
            return None


def _only_disjoint_slices(g: Graph, name: str) -> bool:
    """Is `name` read by slices only, no two of which share an element?"""
    if name not in g.disjoint:
        uses = g.uses.get(name, ())
        slices = [use.ranges for use in uses if isinstance(use, ir.Slice)]
        apart = all(_disjoint(a, b) for a, b in combinations(slices, 2))
        g.disjoint[name] = bool(uses) and len(slices) == len(uses) and apart
    return g.disjoint[name]


def _disjoint(a: Sequence[Range], b: Sequence[Range]) -> bool:
    return any(not set(range(*r)) & set(range(*s)) for r, s in zip(a, b, strict=True) if r != s)


def _slice_aligned(g: Graph, name: str, ranges: tuple[Range, ...]) -> str:
    """The part of `name` that broadcasts to the slice `ranges` of a result it broadcasts to."""
    shape = g.shape(name)
    own = ranges[len(ranges) - len(shape) :]
    return g.slice(name, tuple(full_range(1) if n == 1 else r for n, r in zip(shape, own, strict=True)))


def _slice_letters(g: Graph, name: str, term: str, wanted: dict[str, Range]) -> str:
    shape = g.shape(name)
    return g.slice(name, tuple(wanted.get(c, full_range(n)) for c, n in zip(term, shape, strict=True)))


def _slice_concat(g: Graph, xs: tuple[str, ...], axis: int, ranges: tuple[Range, ...]) -> ir.Op | None:
    start, stop, step = ranges[axis]
    parts = []
    offset = 0
    for x in xs:
        n = g.shape(x)[axis]
        skipped = max(0, -((start - offset) // step))
        first = start - offset + skipped * step
        last = min(stop - offset, n)
        if first < last:
            parts.append(g.slice(x, (*ranges[:axis], (first, last, step), *ranges[axis + 1 :])))
        offset += n
    return ir.Concat(tuple(parts), axis) if parts else None


def _lengths(ranges: tuple[Range, ...]) -> tuple[int, ...]:
    return tuple(len(range(*r)) for r in ranges)


def _through_reshape(
    ranges: tuple[Range, ...], outer: tuple[int, ...], inner: tuple[int, ...]
) -> tuple[Range, ...] | None:
    """The slice of a value of shape `inner` whose reshape is the slice `ranges` of its reshape to `outer`.

    Axes are matched in groups of equal size. Within a group, a whole range stays whole, a single axis keeps its
    range, and a run of consecutive elements is found again if it is a box in the inner axes as well.
    """
    if 0 in outer or 0 in _lengths(ranges):
        return None
    result: list[Range] = []
    for o, i in _matching_axes(outer, inner):
        wanted, shape, own = ranges[o], outer[o], inner[i]
        if all(r == full_range(n) for r, n in zip(wanted, shape, strict=True)):
            result += [full_range(n) for n in own]
        elif len(shape) == 1 and len(own) == 1:
            result += wanted
        else:
            run = _run(wanted, shape)
            box = None if run is None else _box(*run, own)
            if box is None:
                return None
            result += box
    return tuple(result)


def _matching_axes(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """The finest split of the axes of two shapes of equal size into groups of equal size, in order."""
    groups = []
    i = j = 0
    while i < len(a) or j < len(b):
        start_i, start_j = i, j
        i, j = min(i + 1, len(a)), min(j + 1, len(b))
        while (size_a := prod(a[start_i:i])) != (size_b := prod(b[start_j:j])):
            if size_a < size_b:
                i += 1
            else:
                j += 1
        groups.append((slice(start_i, i), slice(start_j, j)))
    return groups


def _run(ranges: tuple[Range, ...], shape: tuple[int, ...]) -> tuple[int, int] | None:
    """First and last + 1 of the row-major positions of a slice, if they are consecutive."""
    start, length = 0, 1
    for (first, last, step), n in zip(ranges, shape, strict=True):
        count = last - first
        if step != 1 or (length > 1 and count != n):
            return None
        start = start * n + first
        length *= count
    return start, start + length


def _box(start: int, stop: int, shape: tuple[int, ...]) -> list[Range] | None:
    """The slice of `shape` whose row-major positions are start..stop-1, if there is one."""
    if not shape:
        return []
    block = prod(shape[1:])
    first = start // block
    if first == (stop - 1) // block:
        rest = _box(start - first * block, stop - first * block, shape[1:])
        return None if rest is None else [(first, first + 1, 1), *rest]
    if start % block == 0 and stop % block == 0:
        return [(first, stop // block, 1), *(full_range(n) for n in shape[1:])]
    return None
