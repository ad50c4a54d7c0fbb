"""Constants: fold them, drop neutral ones, let zeros absorb.

A `Fill(0)` usually stands for the state of an absent child, and what multiplies it is a weight or a gate: U @ 0, f * 0.
Both are finite (`is_bounded`), so the product is 0 and the gate need not be computed. Anything else that is multiplied
by 0 may be infinite or NaN, and the product is computed. Two departures from IEEE arithmetic are left: a NaN that a
gate is computed from is not seen through `gate * 0`, nor a weight that is not finite through `weight * 0`; and x + 0 is
x, also where x is -0.0. They apply to zeros that are known while compiling only, never to computed ones.
"""

from __future__ import annotations

from math import isfinite, prod

import numpy as np

from cortex.ra import ir
from cortex.ra.interp import constant
from cortex.ra.rules.bounded import is_bounded
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
            values = {g.fill(x) for x in xs}
            value = values.pop()
            return None if value is None or values else _filled(g, op, value)
        case _:
            return None


def drop_neutral(g: Graph, op: ir.Op) -> ir.Op | str | None:
    """x + 0, x - 0, x * 1 and x / 1 are x; 0 - x and x * -1 are -x; --x is x."""
    match op:
        case ir.Binary("add", x, y) if g.fill(x) == 0:
            return _as_large(g, op, y)
        case ir.Binary("mul", x, y) if g.fill(x) == 1:
            return _as_large(g, op, y)
        case ir.Binary("add" | "sub", x, y) if g.fill(y) == 0:
            return _as_large(g, op, x)
        case ir.Binary("mul" | "div", x, y) if g.fill(y) == 1:
            return _as_large(g, op, x)
        case ir.Binary("sub", x, y) if g.fill(x) == 0:
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


def absorb_zeros(g: Graph, op: ir.Op) -> ir.Op | None:
    """x * 0 and contractions with 0 are 0 where x is made of weights and gates (see the module's note).

    before:  z = fill 0; t = U @ z; i = t + b
    after:   i = b
    """
    match op:
        case ir.Binary("mul", x, y) | ir.Contract(_, x, y) if 0 in (g.fill(x), g.fill(y)):
            return _filled(g, op, 0.0) if is_bounded(g, y if g.fill(x) == 0 else x) else None
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
    return ir.Fill(value + 0.0, infer(op, g.builder.types, g.builder.declared).shape)


def _scalar(op: ir.Op, *values: float) -> float:
    names = ("x", "y")
    return float(constant(op, {name: np.array(v) for name, v in zip(names, values, strict=False)}))
