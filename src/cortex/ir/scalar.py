"""Scalar expressions: what ILIR statements compute with.

    Expr = Int | Float | Var | Load | Index | Unary | Binary | Fma | Select | Cast

Every expression has one of the types i64, f32, bool (`dtype_of`). Integer arithmetic never overflows in a
verified program. Floating-point arithmetic is IEEE single precision, never reassociated: two programs with
the same expression give the same bits. Under a vectorized loop an expression stands for one value per lane.
"""

from __future__ import annotations

from math import copysign
from typing import Literal, TypeAlias, assert_never

from cortex.ir.node import Node, node

DType = Literal["i64", "f32", "bool"]

UnaryFn = Literal["neg", "abs", "exp", "log", "sqrt", "tanh", "sigmoid", "round", "not"]
BinaryFn = Literal[
    "add", "sub", "mul", "div", "min", "max", "copysign", "ldexp",
    "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne", "and", "or",
]  # fmt: skip

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
LOGICAL = frozenset({"and", "or"})


@node
class Int(Node):
    """An integer constant (i64)."""

    value: int


@node
class Float(Node):
    """A single-precision constant (f32); infinities and NaN are allowed. 0.0 and -0.0 are different constants."""

    value: float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Float) or self.value != other.value:
            return False
        return self.value != 0 or copysign(1.0, self.value) == copysign(1.0, other.value)

    def __hash__(self) -> int:
        return hash(self.value)


@node
class Var(Node):
    """A loop variable (i64) or a name bound by `Let`."""

    name: str
    dtype: DType = "i64"


@node
class Load(Node):
    """Element `index` of a buffer. One index expression per dimension of the buffer."""

    buffer: str
    index: tuple[Expr, ...]
    dtype: DType = "f32"


@node
class Index(Node):
    """Value of an uninterpreted index function of the linear form: `child_left(n)`, `group_start(g)` (i64)."""

    fn: str
    args: tuple[Expr, ...]


@node
class Unary(Node):
    """A function of one operand. `round` is to nearest, ties to even; `not` takes and gives bool."""

    fn: UnaryFn
    x: Expr


@node
class Binary(Node):
    """A function of two operands of one type; comparisons give bool.

    `floordiv`, `mod` (of non-negative i64) round down. `min`/`max` on f32 propagate NaN, as torch's do.
    `ldexp(x, n)` is x * 2**n for f32 x and an integral f32 n; `copysign(x, y)` has the size of x and the
    sign of y.
    """

    fn: BinaryFn
    x: Expr
    y: Expr


@node
class Fma(Node):
    """x * y + z, rounded once where the target has fused multiply-add (and twice where it has not)."""

    x: Expr
    y: Expr
    z: Expr


@node
class Select(Node):
    """`x` where `cond`, else `y`; both are evaluated."""

    cond: Expr
    x: Expr
    y: Expr


@node
class Cast(Node):
    """The value of `x` (i64, f32 or bool) as `dtype`: i64 -> f32 rounds to nearest, f32 -> i64 truncates."""

    x: Expr
    dtype: DType


Expr: TypeAlias = "Int | Float | Var | Load | Index | Unary | Binary | Fma | Select | Cast"


def dtype_of(e: Expr) -> DType:
    """The type of an expression."""
    match e:
        case Int() | Index():
            return "i64"
        case Float() | Fma():
            return "f32"
        case Var(dtype=dtype) | Load(dtype=dtype) | Cast(dtype=dtype):
            return dtype
        case Unary(fn, x):
            return "bool" if fn == "not" else dtype_of(x)
        case Binary(fn, x, _):
            return "bool" if fn in COMPARISONS or fn in LOGICAL else dtype_of(x)
        case Select(_, x, _):
            return dtype_of(x)
        case _:
            assert_never(e)
