"""Approximations of exp, sigmoid and tanh in single precision.

Each function builds the expression for its argument and gives subexpressions that are used more than once to
`bind`, which returns a name for them. NaN gives NaN; no argument traps or takes a different path. The bounds below
are in units in the last place (ULP) of the exact result, checked over all exponents against double precision; they
hold with and without fused multiply-add unless said otherwise.

Coefficients are minimax, fitted in double precision and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from cortex.ir.scalar import Binary, Expr, Float, Fma, Unary

Bind: TypeAlias = Callable[[Expr], Expr]

_LOG2_E = 1.4426950408889634
# ln 2 in two parts; an integer below 512 times the first is exact, so that x - n * ln 2 is as good as x.
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
# (exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2, highest power first; relative error of exp 3.1e-9
_EXP = (0.0013814539415761828, 0.00836874544620514, 0.04166838899254799, 0.1666652113199234, 0.4999999403953552)
_EXP_IS_ZERO = -104.0
_EXP_IS_INFINITE = 89.0

_TANH_IS_ONE = 10.0  # 1 - tanh(10) is 4e-9, less than half an ULP
# (2**f - 1) / f for |f| <= 1/2, highest power first, fitted to what is left of 2 log2(e) in single precision;
# relative error 1.7e-8
_EXP2 = (
    0.00015392327622976154,
    0.0013381503522396088,
    0.009618248790502548,
    0.05550384894013405,
    0.24022650718688965,
    0.6931471824645996,
)


def exp(x: Expr, bind: Bind) -> Expr:
    """e**x. At most 1 ULP, 1.25 without fused multiply-add.

    It is inf above 88.7228, denormal below -87.3365 and 0 below -103.972, as the exact value rounds.
    x = n ln 2 + r with an integer n and |r| <= ln(2)/2; e**x = 2**n * e**r. 13 instructions with AVX-512.
    """
    x = bind(_clamp(x, _EXP_IS_ZERO, _EXP_IS_INFINITE))
    return _exp(x, Binary("mul", x, Float(_LOG2_E)), bind)


def sigmoid(x: Expr, bind: Bind) -> Expr:
    """1 / (1 + e**-x). At most 3 ULP; below -88.7229 it is 0, where the exact value is less than 2**-127.

    15 instructions with AVX-512, one of them a division.
    """
    x = bind(_clamp(x, -_EXP_IS_INFINITE, -_EXP_IS_ZERO))
    power = _exp(Unary("neg", x), Binary("mul", x, Float(-_LOG2_E)), bind)  # the sign goes into a multiply-subtract
    return Binary("div", Float(1.0), Binary("add", Float(1.0), power))


def tanh(x: Expr, bind: Bind) -> Expr:
    """The hyperbolic tangent. At most 3.5 ULP, also near 0; never outside -1..1, and odd.

    With t = e**(-2|x|) - 1, the result is -t / (2 + t) with the sign of x. -2|x| log2(e) = n + f with an integer n and
    |f| <= 1/2. That product is rounded, which e**x could not afford where it is large; here it moves t by less than t's
    own rounding. t is accurate near 0, as it is made of 2**f - 1 and not of 2**f: t = 2**n (2**f - 1) + (2**n - 1).
    17 instructions with AVX-512, one a division.
    """
    scaled = bind(Binary("mul", Binary("min", Unary("abs", x), Float(_TANH_IS_ONE)), Float(-2.0 * _LOG2_E)))
    n = bind(Unary("round", scaled))
    f = bind(Binary("sub", scaled, n))
    power = bind(Binary("ldexp", Float(1.0), n))
    t = bind(Fma(Binary("mul", power, f), _horner(_EXP2, f), Binary("sub", power, Float(1.0))))
    return Binary("copysign", Binary("div", t, Binary("add", Float(2.0), t)), x)


def _exp(x: Expr, scaled: Expr, bind: Bind) -> Expr:
    """e**x where `scaled` is x / ln 2 and x is in the range where n is small."""
    n = bind(Unary("round", scaled))
    r = bind(_reduced(x, n))
    return Binary("ldexp", Fma(Fma(_horner(_EXP, r), r, Float(1.0)), r, Float(1.0)), n)


def _reduced(x: Expr, n: Expr) -> Expr:
    """x - n ln 2."""
    return Fma(n, Float(-_LN2_LOW), Fma(n, Float(-_LN2_HIGH), x))


def _clamp(x: Expr, low: float, high: float) -> Expr:
    return Binary("max", Binary("min", x, Float(high)), Float(low))


def _horner(coefficients: Sequence[float], x: Expr) -> Expr:
    """The polynomial with the given coefficients, highest power first."""
    total: Expr = Float(coefficients[0])
    for c in coefficients[1:]:
        total = Fma(total, x, Float(c))
    return total
