"""Pointwise operations on values, with NumPy's broadcasting."""

from __future__ import annotations

from typing import Literal

from cortex.frontend.builder import Value, builder
from cortex.frontend.spans import fail
from cortex.ra.ir import Binary, Broadcast, Cast, Fill, Unary, Where

UnaryFn = Literal["neg", "abs", "exp", "log", "sqrt", "tanh", "sigmoid"]
ArithmeticFn = Literal["add", "sub", "mul", "div", "min", "max"]
ComparisonFn = Literal["lt", "le", "gt", "ge", "eq", "ne"]

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "min": "minimum", "max": "maximum", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip


def fill(value: float, shape: tuple[int, ...] = ()) -> Value:
    """A constant."""
    return builder().emit(Fill(float(value), shape), shape)


def as_float(x: Value) -> Value:
    """`x` with element type f32; booleans become 0 and 1."""
    return x if x.dtype == "f32" else builder().emit(Cast(x.name, "f32"), x.shape, x)


def unary(fn: UnaryFn, x: Value) -> Value:
    """A function of each element."""
    x = as_float(x)
    return builder().emit(Unary(fn, x.name), x.shape, x)


def arithmetic(fn: ArithmeticFn, x: Value, y: Value) -> Value:
    """A function of two elements."""
    x, y = as_float(x), as_float(y)
    shape = broadcast_shapes(f"`{SYMBOLS[fn]}`", x, y)
    return builder().emit(Binary(fn, x.name, y.name), shape, x, y)


def comparison(fn: ComparisonFn, x: Value, y: Value) -> Value:
    """A comparison of two elements, as a bool tensor."""
    x, y = as_float(x), as_float(y)
    shape = broadcast_shapes(f"`{SYMBOLS[fn]}`", x, y)
    return builder().emit(Binary(fn, x.name, y.name), shape, x, y, dtype="bool")


def logical(fn: Literal["and", "or"], x: Value, y: Value) -> Value:
    """`&` and `|` of bool tensors."""
    for side in (x, y):
        if side.dtype != "bool":
            raise fail(f"`{SYMBOLS[fn]}` needs bool tensors, but got {side.text()} of floats. Compare it first: x > 0.")
    shape = broadcast_shapes(f"`{SYMBOLS[fn]}`", x, y)
    return builder().emit(Binary(fn, x.name, y.name), shape, x, y, dtype="bool")


def negate(x: Value) -> Value:
    """`~` of a bool tensor."""
    if x.dtype != "bool":
        raise fail(f"`~` needs a bool tensor, but got {x.text()} of floats. Compare it first: x > 0.")
    return comparison("eq", x, fill(0.0))


def where(cond: Value, x: Value, y: Value) -> Value:
    """`x` where `cond`, else `y`."""
    if cond.dtype != "bool":
        raise fail(f"where(): the condition is {cond.text()} of floats, not of truth values. Compare it first: x > 0.")
    x, y = as_float(x), as_float(y)
    shape = broadcast_shapes("where()", cond, x, y)
    return builder().emit(Where(cond.name, x.name, y.name), shape, cond, x, y)


def broadcast_to(x: Value, shape: tuple[int, ...], over: str | None = None) -> Value:
    """`x` repeated to `shape`; with `over`, for every child in that list relation."""
    if x.shape == shape and over is None:
        return x
    return builder().emit(Broadcast(x.name, shape), shape, x, dtype=x.dtype, over=over)


def broadcast_shapes(what: str, *values: Value) -> tuple[int, ...]:
    """The common shape of `values` by NumPy's rules."""
    rank = max(len(v.shape) for v in values)
    shape: list[int] = []
    for axis in range(-rank, 0):
        sizes = {v.shape[axis] for v in values if len(v.shape) >= -axis} - {1}
        if len(sizes) > 1:
            operands = " and ".join(v.text() for v in values)
            raise fail(
                f"{what} of {operands}: the sizes along axis {axis} are {' and '.join(map(str, sorted(sizes)))}. "
                "They must be equal, or one of them 1."
            )
        shape.append(sizes.pop() if sizes else 1)
    return tuple(shape)
