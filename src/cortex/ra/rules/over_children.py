"""Reductions over children: what the guard decides, what does not depend on the child, what is linear."""

from __future__ import annotations

from math import inf, isfinite

from cortex.ra import ir
from cortex.ra.rules.graph import Graph
from cortex.ra.shapes import broadcast


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
    after:   s = arity(children) * b where there are children, else 0;    a maximum or minimum is b there
    """
    match op:
        case ir.OverChildren("add", x, name) if g.over(x) is None:
            return times(g, g.emit(ir.Arity(name)), x)
        case ir.OverChildren(_, x, name) if g.over(x) is None:
            return _if_any(g, g.emit(ir.Arity(name)), x)
        case _:
            return None


def times(g: Graph, count: str, x: str) -> ir.Op:
    """The sum of `count` values `x`: 0 if there are none, also where x is infinite and 0 * x is NaN."""
    total = g.emit(ir.Binary("mul", g.emit(ir.Cast(count, g.type(x).dtype)), x))
    value = g.fill(x)
    return g.op(total) if value is not None and isfinite(value) else _if_any(g, count, total)


def _if_any(g: Graph, count: str, x: str) -> ir.Op:
    """`x` if `count` is positive, else 0."""
    some = g.emit(ir.Binary("gt", count, g.emit(ir.Fill(0.0, ()))))
    return ir.Where(some, x, g.full(0.0, g.type(x)))


def choose_by_lengths(g: Graph, op: ir.Op) -> str | None:
    """`x if count > 0 else y` is x or y where the guard tells whether there are children.

    before:  s = (arity(children) + 1) * b if arity(children) + 1 > 0 else 0
    after:   s = (arity(children) + 1) * b
    """
    if not isinstance(op, ir.Where):
        return None
    match g.op(op.cond):
        case ir.Binary("gt", count, zero) if g.fill(zero) == 0:
            value = g.fill(count)
            is_positive = _least(g, count) > 0 if value is None else value > 0
            if value is None and not is_positive:
                return None
            chosen = op.x if is_positive else op.y
            shape = broadcast(op, g.shape(op.cond), broadcast(op, g.shape(op.x), g.shape(op.y)))
            return g.spread(chosen, shape)
        case _:
            return None


def _least(g: Graph, x: str) -> float:
    """A number that `x` is not below; -infinity where none is known."""
    match g.op(x):
        case ir.Fill(value):
            return value
        case ir.Arity(name):
            return float(name in g.not_empty)
        case ir.Binary("add", a, b):
            return _least(g, a) + _least(g, b)
        case ir.Binary("mul", a, b) if min(_least(g, a), _least(g, b)) >= 0:
            return _least(g, a) * _least(g, b)
        case ir.Reshape(a) | ir.Broadcast(a):
            return _least(g, a)
        case _:
            return -inf


def pull_products_out(g: Graph, op: ir.Op) -> ir.Op | None:
    """A sum of products with one factor in common is one product with the sum.

    before:  t_k = U @ h_k; s = sum over children of t_k
    after:   t = sum over children of h_k; s = U @ t

    Only if the product has no other use, or it would be computed twice, and if the common factor is finite: U @ 0 is
    NaN for an infinite U, and a sum of no products is 0. A sum of such a product and something else is taken apart for
    it.
    """
    if not isinstance(op, ir.OverChildren) or op.fn != "add" or not g.used_once(op.x):
        return None
    match g.op(op.x):
        case ir.Contract(spec, x, y) if _is_common(g, x):
            return ir.Contract(spec, x, g.emit(ir.OverChildren("add", y, op.name)))
        case ir.Contract(spec, x, y) if _is_common(g, y):
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
    return isinstance(op, ir.Contract) and g.used_once(name) and (_is_common(g, op.x) or _is_common(g, op.y))


def _is_common(g: Graph, factor: str) -> bool:
    """Is a factor the same for all children, and made of finite weights? Fields and states may be infinite."""
    match g.op(factor):
        case ir.Lookup(x) | ir.Slice(x) | ir.Reshape(x) | ir.Transpose(x) if factor not in g.constants:
            return g.over(factor) is None and _is_common(g, x)
        case _:
            return factor in g.constants and not g.reads(factor, g.builder.declared.infinite)
