"""Constants: fold them, and drop neutral ones, as IEEE arithmetic has it.

A `Fill(0)` usually stands for the state of an absent child. U @ 0 is not dropped, since a weight may be infinite or
NaN: it is computed from weights alone, so that `Hoist` moves it to load time. x + 0 is x unless x may be -0.0.
"""

from __future__ import annotations

from dataclasses import replace
from math import copysign, isfinite, prod

import numpy as np

from cortex.ra import ir
from cortex.ra.interp import constant
from cortex.ra.rules.graph import Graph
from cortex.ra.shapes import COMPARISONS, CONNECTIVES, broadcast, infer


def fold_fills(g: Graph, op: ir.Op) -> ir.Op | None:
    """An arithmetic op, a view or a reduction of constants is a constant.

    before:  a = fill 2; b = a * a; c = b[0:3]
    after:   c = fill 4

    A result that is not finite stays unfolded, so that the place where it arises can be seen.
    """
    match op:
        case ir.Unary(fn, x):
            value = g.fill(x)
            return None if value is None else _filled(g, op, _scalar(ir.Unary(fn, "x"), value))
        case ir.Binary(fn, x, y) if fn not in COMPARISONS and fn not in CONNECTIVES:
            a, b = g.fill(x), g.fill(y)
            return None if a is None or b is None else _filled(g, op, _scalar(ir.Binary(fn, "x", "y"), a, b))
        case ir.Slice(x) | ir.Reshape(x) | ir.Transpose(x) | ir.Broadcast(x) | ir.Lookup(x):
            value = g.fill(x)
            return None if value is None else _filled(g, op, value)
        case ir.Reduce(fn, x, axes):
            value = g.fill(x)
            count = prod(g.shape(x)[a] for a in axes)
            if value is None or count == 0:
                return None
            return _filled(g, op, value * count if fn == "add" else value)
        case ir.Concat(xs):
            parts = [g.op(name) for name in xs]
            fills = [part for part in parts if isinstance(part, ir.Fill)]
            same = len(fills) == len(parts) and all(replace(x, shape=fills[0].shape) == fills[0] for x in fills)
            return _filled(g, op, fills[0].value) if same else None
        case _:
            return None


def drop_neutral(g: Graph, op: ir.Op) -> ir.Op | str | None:
    """x + 0, x - 0, x * 1 and x / 1 are x; 0 - x and x * -1 are -x; --x is x. Zeros keep their signs."""
    match op:
        case ir.Binary("add", x, y) if g.fill(x) == 0 and _keeps_sign(g, y, _is_negative(g, x)):
            return _as_large(g, op, y)
        case ir.Binary("mul", x, y) if g.fill(x) == 1:
            return _as_large(g, op, y)
        case ir.Binary("add", x, y) if g.fill(y) == 0 and _keeps_sign(g, x, _is_negative(g, y)):
            return _as_large(g, op, x)
        case ir.Binary("sub", x, y) if g.fill(y) == 0 and _keeps_sign(g, x, not _is_negative(g, y)):
            return _as_large(g, op, x)
        case ir.Binary("mul" | "div", x, y) if g.fill(y) == 1:
            return _as_large(g, op, x)
        case ir.Binary("sub", x, y) if g.fill(x) == 0 and _is_negative(g, x):
            return ir.Unary("neg", _as_large(g, op, y))
        case ir.Binary("mul", x, y) if g.fill(y) == -1:
            return ir.Unary("neg", _as_large(g, op, x))
        case ir.Binary("mul", x, y) if g.fill(x) == -1:
            return ir.Unary("neg", _as_large(g, op, y))
        case ir.Unary("neg", x):
            inner = g.op(x)
            return inner.x if isinstance(inner, ir.Unary) and inner.fn == "neg" else None
        case ir.Where(_, x, y) if x == y:
            return _as_large(g, op, x)
        case _:
            return None


def _is_negative(g: Graph, x: str) -> bool:
    """Is this constant negative, or -0.0?"""
    value = g.fill(x)
    return value is not None and copysign(1.0, value) < 0


def _keeps_sign(g: Graph, x: str, adds_negative_zero: bool) -> bool:
    """Is x the same when a zero is added to it? Only -0.0 + 0.0 is something else than its first operand."""
    return adds_negative_zero or not _may_be_negative_zero(g, x)


def _may_be_negative_zero(g: Graph, x: str) -> bool:
    """Can an element of `x` be -0.0? Sums begin with 0.0, and are -0.0 only where everything that they add is."""
    if g.type(x).dtype != "f32":
        return False
    match g.op(x):
        case ir.Contract() | ir.Reduce("add") | ir.OverChildren("add") | ir.Arity() | ir.Unary("exp" | "sigmoid"):
            return False
        case ir.Fill(value):
            return value == 0 and copysign(1.0, value) < 0
        case ir.Binary("add", a, b):
            return _may_be_negative_zero(g, a) and _may_be_negative_zero(g, b)
        case ir.Slice(a) | ir.Reshape(a) | ir.Transpose(a) | ir.Broadcast(a) | ir.Cast(a):
            return _may_be_negative_zero(g, a)
        case _:
            return True


def begin_sums(g: Graph, op: ir.Op) -> str | None:
    """0 + x is x: where sums are rolled up to sums over children, which begin with 0."""
    match op:
        case ir.Binary("add", x, y) if g.fill(x) == 0:
            return _as_large(g, op, y)
        case ir.Binary("add", x, y) if g.fill(y) == 0:
            return _as_large(g, op, x)
        case _:
            return None


def absorb_zeros(g: Graph, op: ir.Op) -> ir.Op | None:
    """U @ 0 is 0, for finite weights: where a sum over children of U @ h, taken as U @ (sum of h), has no children."""
    match op:
        case ir.Contract(_, x, y) if 0 in (g.fill(x), g.fill(y)):
            return _filled(g, op, 0.0) if _is_weight(g, y if g.fill(x) == 0 else x) else None
        case _:
            return None


def _is_weight(g: Graph, x: str) -> bool:
    """Is this a parameter, or a part of one?"""
    match g.op(x):
        case ir.Param():
            return True
        case ir.Slice(a) | ir.Reshape(a) | ir.Transpose(a) | ir.Broadcast(a):
            return _is_weight(g, a)
        case _:
            return False


def multiply_zeros(g: Graph, op: ir.Op) -> ir.Op | None:
    """A contraction of constants, one of them 0, is 0."""
    match op:
        case ir.Contract(_, x, y) if (a := g.fill(x)) is not None and (b := g.fill(y)) is not None and 0 in (a, b):
            return _filled(g, op, 0.0) if isfinite(a) and isfinite(b) else None
        case _:
            return None


def shrink_fills(g: Graph, op: ir.Op) -> ir.Op | None:
    """A constant operand of a pointwise op is a scalar where broadcasting makes it as large as the other one."""
    match op:
        case ir.Binary(fn, x, y):
            a, b = g.fill(x), g.fill(y)
            if b is not None and g.shape(y) and _covers(g.shape(x), g.shape(y)):
                return ir.Binary(fn, x, g.emit(ir.Fill(b, ())))
            if a is not None and g.shape(x) and _covers(g.shape(y), g.shape(x)):
                return ir.Binary(fn, g.emit(ir.Fill(a, ())), y)
    return None


def _covers(large: tuple[int, ...], small: tuple[int, ...]) -> bool:
    """Does `small` broadcast to `large` without enlarging it?"""
    aligned = large[len(large) - len(small) :] if len(small) <= len(large) else ()
    return len(small) <= len(large) and all(n in (1, m) for m, n in zip(aligned, small, strict=True))


def _as_large(g: Graph, op: ir.Binary | ir.Where, x: str) -> str:
    """`x`, broadcast to the shape of the op it replaces."""
    match op:
        case ir.Binary(_, a, b):
            return g.spread(x, broadcast(op, g.shape(a), g.shape(b)))
        case ir.Where(cond, _, _):
            return g.spread(x, broadcast(op, g.shape(cond), g.shape(x)))


def _filled(g: Graph, op: ir.Op, value: float) -> ir.Op | None:
    if not isfinite(value):
        return None
    return ir.Fill(value, infer(op, g.builder.types, g.builder.declared).shape)


def _scalar(op: ir.Op, *values: float) -> float:
    names = ("x", "y")
    return float(constant(op, {name: np.array(v) for name, v in zip(names, values, strict=False)}))
