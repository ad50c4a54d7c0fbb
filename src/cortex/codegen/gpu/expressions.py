"""Scalar expressions as text of C, with no more parentheses than a reader needs.

Integers are int, as all that the linear form counts fits; only what becomes a float may be larger on the way there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from cortex.codegen.gpu.dialect import Dialect
from cortex.codegen.gpu.names import Identifiers
from cortex.errors import InternalError
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var, dtype_of

_INFIX = {
    "or": ("||", 1), "and": ("&&", 2), "eq": ("==", 3), "ne": ("!=", 3),
    "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4),
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "div": ("/", 6), "floordiv": ("/", 6), "mod": ("%", 6),
}  # fmt: skip
_CHOICE, _PREFIX, _ATOM = 0, 7, 8

EXTREMA = {"max": "maximum", "min": "minimum"}
"""What propagates NaN, which C's own functions do not."""


@dataclass
class ExpressionPrinter:
    """Prints expressions; `element` gives the text of a load. What is met is noted for the kernel's arguments."""

    dialect: Dialect
    identifier: Identifiers
    element: Callable[[str, tuple[Expr, ...]], str]
    indices: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    wide: bool = False

    def __call__(self, e: Expr, least: int = 0) -> str:
        """The text of `e`, in parentheses where its outermost operator binds less than `least`."""
        text, level = self._print(e)
        return text if level >= least else f"({text})"

    def _print(self, e: Expr) -> tuple[str, int]:
        match e:
            case Int(value):
                return str(value), _ATOM if value >= 0 else _PREFIX
            case Float(value):
                return self._number(value)
            case Var(name):
                self.variables.add(name)
                return self._leaf(self.identifier.variable(name), e)
            case Load(buffer, index):
                return self.element(buffer, index), _ATOM
            case Index(fn, (argument,)):
                self.indices.add(fn)
                return self._leaf(f"{self.identifier.array(fn)}[{self.narrowly(argument)}]", e)
            case Index(fn):
                raise InternalError(f"index function {fn!r} takes one argument")
            case Fma(x, y, z):
                return self._call(self.dialect.functions["fma"], x, y, z)
            case Unary(fn, x):
                return self._unary(fn, x)
            case Binary(fn, x, y):
                return self._binary(fn, x, y)
            case Select(cond, x, y):
                return f"{self(cond, 1)} ? {self(x, 1)} : {self(y, 1)}", _CHOICE
            case Cast(x, dtype):
                return self._cast(x, dtype)
            case _:
                assert_never(e)

    def _leaf(self, text: str, e: Expr) -> tuple[str, int]:
        is_wide = self.wide and dtype_of(e) == "i64"
        return (f"({self.dialect.wide_integer}){text}", _PREFIX) if is_wide else (text, _ATOM)

    def narrowly(self, e: Expr) -> str:
        """The text of an index, which is an int wherever it stands."""
        wide, self.wide = self.wide, False
        text = self(e)
        self.wide = wide
        return text

    def _number(self, value: float) -> tuple[str, int]:
        rounded = np.float32(value)
        if math.isfinite(rounded):
            digits = str(float(str(rounded)))
            return f"{digits}f", _ATOM if math.copysign(1.0, value) > 0 else _PREFIX
        bits = 0x7FC00000 if math.isnan(rounded) else 0x7F800000 if rounded > 0 else 0xFF800000
        return f"{self.dialect.float_of_bits}({bits:#x}u)", _ATOM

    def _call(self, fn: str, *operands: Expr) -> tuple[str, int]:
        return f"{fn}({', '.join(self(x) for x in operands)})", _ATOM

    def _unary(self, fn: str, x: Expr) -> tuple[str, int]:
        if fn == "neg":
            text = self(x, _PREFIX)
            return (f"-({text})" if text.startswith("-") else f"-{text}"), _PREFIX
        if fn == "not":
            return f"!{self(x, _PREFIX)}", _PREFIX
        if dtype_of(x) == "i64" and fn == "abs":
            return self._call("abs", x)
        if fn not in self.dialect.functions:
            raise InternalError(f"'{fn}' has no function of C; exp, tanh and sigmoid are removed by expand_math")
        return self._call(self.dialect.functions[fn], x)

    def _binary(self, fn: str, x: Expr, y: Expr) -> tuple[str, int]:
        if fn in _INFIX:
            sign, level = _INFIX[fn]
            return f"{self(x, level)} {sign} {self(y, level + 1)}", level
        match fn:
            case "min" | "max":
                return self.extremum(fn, self(x), self(y), dtype_of(x) == "f32"), _ATOM
            case "ldexp":
                self.functions.add("scale")
                return self._call("scale", x, y)
            case "copysign":
                return self._call(self.dialect.functions["copysign"], x, y)
            case _:
                raise InternalError(f"'{fn}' has no operator of C")

    def extremum(self, fn: str, x: str, y: str, of_floats: bool = True) -> str:
        """The greater or the smaller of two texts."""
        if not of_floats:
            return f"{fn}({x}, {y})"
        self.functions.add(EXTREMA[fn])
        return f"{EXTREMA[fn]}({x}, {y})"

    def _cast(self, x: Expr, dtype: str) -> tuple[str, int]:
        source = dtype_of(x)
        if source == dtype:
            return self._print(x)
        if dtype == "bool":
            return f"{self(x, 4)} != {'0.0f' if source == 'f32' else '0'}", 3
        if dtype == "f32" and source == "i64":
            wide, self.wide = self.wide, not isinstance(x, Var | Index | Int)  # which are int
            text = self(x, _PREFIX)
            self.wide = wide
            return f"(float){text}", _PREFIX
        ctype = {"f32": "float", "i64": "int"}[dtype]
        return f"({ctype}){self(x, _PREFIX)}", _PREFIX
