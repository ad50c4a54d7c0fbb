"""Axes of one element have one form: they are not computed with, but put back afterwards.

What a trace for one child does to a stack of one row, and what a trace for several does to each row, differ in them.
"""

from __future__ import annotations

from cortex.ra import ir
from cortex.ra.rules.graph import Graph
from cortex.ra.shapes import broadcast, operand_names, rename_operands, terms


def drop_unit_axes(g: Graph, op: ir.Op) -> ir.Op | None:
    """before:  y = einsum("ik,jk->ij", x, w)               with x of shape (1, 3)
    after:   y = reshape(einsum("k,jk->j", reshape(x), w))  likewise reductions over such axes
    """
    match op:
        case ir.Reduce(fn, x, axes):
            shape = g.shape(x)
            kept = [a for a in range(len(shape)) if not (a in axes and shape[a] == 1)]
            if len(kept) == len(shape):
                return None
            y = g.emit(ir.Reshape(x, tuple(shape[a] for a in kept)))
            return ir.Reduce(fn, y, tuple(kept.index(a) for a in axes if a in kept))
        case ir.Contract(spec, x, y):
            tx, ty, out = terms(spec)
            extents = dict(zip(tx + ty, g.shape(x) + g.shape(y), strict=True))
            units = {letter for letter, n in extents.items() if n == 1}
            left = ["".join(c for c in term if c not in units) for term in (tx, ty, out)]
            if not units or (not (left[0] and left[1]) and left[2] not in left[:2]):
                return None
            x, y = (
                g.emit(ir.Reshape(v, tuple(extents[c] for c in term))) for v, term in zip((x, y), left, strict=False)
            )
            product: ir.Op = ir.Contract(f"{left[0]},{left[1]}->{left[2]}", x, y)
            if not (left[0] and left[1]):
                product = ir.Binary("mul", x, y)
            if left[2] == out:
                return product
            return ir.Reshape(g.emit(product), tuple(extents[c] for c in out))
        case _:
            return None


def drop_unit_axes_of_pointwise(g: Graph, op: ir.Op) -> ir.Op | None:
    """before:  y = x + b                         with x of shape (1, 3) and b of shape (3,)
    after:   y = reshape(reshape(x) + b)       likewise other pointwise ops
    """
    if not isinstance(op, ir.Unary | ir.Binary | ir.Where | ir.Cast):
        return None
    shapes = {x: g.shape(x) for x in operand_names(op)}
    whole: tuple[int, ...] = ()
    for shape in shapes.values():
        whole = broadcast(op, whole, shape)
    kept = [a - len(whole) for a, n in enumerate(whole) if n != 1]
    if len(kept) == len(whole):
        return None
    names = {x: g.emit(ir.Reshape(x, tuple(shape[a] for a in kept if -a <= len(shape)))) for x, shape in shapes.items()}
    return ir.Reshape(g.emit(rename_operands(op, names)), whole)
