"""The value of an integer or boolean expression where its variables and index functions are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from cortex.errors import InternalError
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var

Arrays = Mapping[str, Sequence[int]]

_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "min": min,
    "max": max,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": lambda x, y: bool(x and y),
    "or": lambda x, y: bool(x or y),
}
_UNARY: dict[str, Callable[[int], int]] = {"neg": lambda x: -x, "abs": abs, "not": lambda x: not x}


def evaluate(e: Expr, values: Mapping[str, int], arrays: Arrays) -> int:
    """The value of `e`; an InternalError when it depends on memory or on floats, which nobody knows in advance."""
    match e:
        case Int(value):
            return value
        case Var(name):
            return values[name]
        case Index(fn, (argument,)):
            return int(arrays[fn][evaluate(argument, values, arrays)])
        case Unary(fn, x) if fn in _UNARY:
            return _UNARY[fn](evaluate(x, values, arrays))
        case Binary(fn, x, y) if fn in _BINARY:
            return _BINARY[fn](evaluate(x, values, arrays), evaluate(y, values, arrays))
        case Select(cond, x, y):
            return evaluate(x if evaluate(cond, values, arrays) else y, values, arrays)
        case Cast(x, "bool"):
            return evaluate(x, values, arrays) != 0
        case Load() | Float() | Fma() | Cast() | Unary() | Binary() | Index():
            raise InternalError(f"{type(e).__name__} has no value before the program runs")
        case _:
            assert_never(e)
