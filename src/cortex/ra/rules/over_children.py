"""Reductions over children: what the guard decides, what does not depend on the child, what is linear."""

from __future__ import annotations

from math import isfinite

from cortex.ra import ir
from cortex.ra.rules.fold_constants import is_weight
from cortex.ra.rules.graph import Graph


def use_lengths(g: Graph, op: ir.Op) -> ir.Op | str | None:
    """Where the guard tells the number of children, `Arity` is a constant; over none, every reduction is 0."""
    match op:
        case ir.Arity(name) if name in g.lengths:
            return ir.Fill(float(g.lengths[name]), ())
        case ir.OverChildren(_, x, name) if g.lengths.get(name) == 0 or g.fill(x) == 0:
            return g.full(0.0, g.type(x))
        case _:
            return None


def count_invariants(g: Graph, op: ir.Op) -> ir.Op | None:
    """What is the same for every child needs no reduction.

    before:  s = sum over children of b
    after:   s = arity(children) * b;    a maximum or minimum is b where there are children, else 0

    The sum, too, is chosen where b may be infinite: over no children it is 0, and 0 * b would be NaN. Weights are taken
    to be finite here.
    """
    match op:
        case ir.OverChildren(fn, x, name) if g.over(x) is None:
            arity = g.emit(ir.Arity(name))
            total = x
            if fn == "add":
                total = g.emit(ir.Binary("mul", g.emit(ir.Cast(arity, g.type(x).dtype)), x))
                value = g.fill(x)
                if is_weight(g, x) or (value is not None and isfinite(value)):
                    return g.op(total)
            some = g.emit(ir.Binary("gt", arity, g.emit(ir.Fill(0.0, ()))))
            return ir.Where(some, total, g.full(0.0, g.type(x)))
        case _:
            return None


def pull_products_out(g: Graph, op: ir.Op) -> ir.Op | None:
    """A sum of products with one factor in common is one product with the sum.

    before:  t_k = U @ h_k; s = sum over children of t_k
    after:   t = sum over children of h_k; s = U @ t

    Only if the product has no other use, or it would be computed twice. A sum of such a product and something
    else is taken apart for it.
    """
    if not isinstance(op, ir.OverChildren) or op.fn != "add" or not g.used_once(op.x):
        return None
    match g.op(op.x):
        case ir.Contract(spec, x, y) if g.over(x) is None:
            return ir.Contract(spec, x, g.emit(ir.OverChildren("add", y, op.name)))
        case ir.Contract(spec, x, y) if g.over(y) is None:
            return ir.Contract(spec, g.emit(ir.OverChildren("add", x, op.name)), y)
        case ir.Binary("add" | "sub" as fn, x, y) if g.shape(x) == g.shape(y) and any(
            _is_common_product(g, v) for v in (x, y)
        ):
            sums = (g.emit(ir.OverChildren("add", v, op.name)) for v in (x, y))
            return ir.Binary(fn, *sums)
        case _:
            return None


def _is_common_product(g: Graph, name: str) -> bool:
    """Is `name` a product that can be pulled out of a sum over children?"""
    op = g.op(name)
    return isinstance(op, ir.Contract) and g.used_once(name) and None in (g.over(op.x), g.over(op.y))
