"""Views: a view of a view is one view, and a view that changes nothing is no view."""

from __future__ import annotations

from cortex.ra import ir
from cortex.ra.rules.graph import Graph, Range, full_range


def drop_identities(g: Graph, op: ir.Op) -> str | None:
    """Whole slices, reshapes, transposes, broadcasts and casts to what a value is already; Concat of one."""
    match op:
        case ir.Slice(x, ranges) if all(r == full_range(n) for r, n in zip(ranges, g.shape(x), strict=True)):
            return x
        case ir.Reshape(x, shape) | ir.Broadcast(x, shape) if g.shape(x) == shape:
            return x
        case ir.Transpose(x, perm) if perm == tuple(range(len(perm))):
            return x
        case ir.Cast(x, dtype) if g.type(x).dtype == dtype:
            return x
        case ir.Concat((x,)):
            return x
        case ir.Reduce(_, x, ()):
            return x
        case _:
            return None


def normalize_slices(_: Graph, op: ir.Op) -> ir.Op | None:
    """One way to write each slice: it stops right after its last element, and a single element has step 1.

    before:  x[0:8:3], x[2:4:7]
    after:   x[0:7:3], x[2:3]
    """
    match op:
        case ir.Slice(x, ranges):
            normal = tuple(_normal(r) for r in ranges)
            return ir.Slice(x, normal) if normal != ranges else None
        case _:
            return None


def merge_views(g: Graph, op: ir.Op) -> ir.Op | None:
    """before:  y = transpose(x); z = transpose(y)
    after:   z = x, or one transpose; likewise slices, reshapes and broadcasts
    """
    match op:
        case ir.Slice(x, ranges):
            match g.op(x):
                case ir.Slice(y, inner):
                    return ir.Slice(y, tuple(_compose(a, b) for a, b in zip(inner, ranges, strict=True)))
        case ir.Transpose(x, perm):
            match g.op(x):
                case ir.Transpose(y, inner_perm):
                    return ir.Transpose(y, tuple(inner_perm[p] for p in perm))
        case ir.Reshape(x, shape):
            match g.op(x):
                case ir.Reshape(y):
                    return ir.Reshape(y, shape)
        case ir.Broadcast(x, shape):
            match g.op(x):
                case ir.Broadcast(y):
                    return ir.Broadcast(y, shape)
    return None


def drop_broadcasts(g: Graph, op: ir.Op) -> ir.Op | None:
    """A pointwise op broadcasts by itself.

    before:  y = broadcast(x, (3, 4)); z = y * a        with a of shape (3, 4)
    after:   z = x * a
    """
    match op:
        case ir.Binary(fn, x, y):
            x_op, y_op = g.op(x), g.op(y)
            if isinstance(x_op, ir.Broadcast) and x_op.shape == g.shape(y):
                return ir.Binary(fn, x_op.x, y)
            if isinstance(y_op, ir.Broadcast) and y_op.shape == g.shape(x):
                return ir.Binary(fn, x, y_op.x)
    return None


def _normal(r: Range) -> Range:
    start, _, step = r
    count = len(range(*r))
    if count == 0:
        return (0, 0, 1)
    return (start, start + (count - 1) * step + 1, step if count > 1 else 1)


def _compose(outer: Range, inner: Range) -> Range:
    """The range of the elements `inner` of the elements `outer`."""
    start, stop, step = _normal(inner)
    first = outer[0] + start * outer[2]
    return _normal((first, first + (stop - start) * outer[2], step * outer[2]))
