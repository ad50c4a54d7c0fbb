"""Functions of one element that RA lacks, from those it has, accurate to single precision."""

from __future__ import annotations

import math

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import arithmetic, comparison, fill, unary

ERF_LIMIT = 3.7439211627767994
"""Beyond it the error function is 1 in single precision."""
ERF_ABOVE = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
ERF_BELOW = (
    -1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667, 0.11098505178285362,
    0.49746925110067538, 1.0,
)  # fmt: skip
"""erf(x) = x * above(x**2) / below(x**2), the coefficients of the highest power first: within 3 units in the last
place, the rational approximation that Eigen and XLA use."""


def erf(x: Value) -> Value:
    """The error function."""
    near = arithmetic("max", arithmetic("min", x, fill(ERF_LIMIT)), fill(-ERF_LIMIT))
    square = arithmetic("mul", near, near)
    ratio = arithmetic("div", _polynomial(square, ERF_ABOVE), _polynomial(square, ERF_BELOW))
    inside = arithmetic("mul", near, ratio)
    below = pointwise.where(comparison("le", x, fill(-ERF_LIMIT)), fill(-1.0), inside)
    return pointwise.where(comparison("ge", x, fill(ERF_LIMIT)), fill(1.0), below)


ERFC = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368,
    -1.26551223,
)  # fmt: skip
"""erfc(x) = t * exp(polynomial(t) - x**2) with t = 1 / (1 + x / 2), for x >= 0, within 1.2e-7 of itself: Chebyshev
fitting as in "Numerical Recipes"."""
ERFC_LIMIT = 20.0
"""Beyond it the complement is 0 in single precision."""


def erfc_above_0(x: Value) -> Value:
    """1 - erf(x) for x >= 0, without losing digits where erf(x) is near 1."""
    near = arithmetic("min", x, fill(ERFC_LIMIT))
    t = arithmetic("div", fill(1.0), arithmetic("add", fill(1.0), arithmetic("mul", near, fill(0.5))))
    exponent = arithmetic("sub", _polynomial(t, ERFC), arithmetic("mul", near, near))
    return arithmetic("mul", t, unary("exp", exponent))


def _polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    result = fill(coefficients[0])
    for c in coefficients[1:]:
        result = arithmetic("add", arithmetic("mul", result, x), fill(c))
    return result


def exp_minus_1(x: Value) -> Value:
    """exp(x) - 1 without losing digits near 0: 2 t / (1 - t) with t = tanh(x / 2), for larger x as it is written."""
    small = comparison("lt", x, fill(0.5))
    near = exp_minus_1_below_0(arithmetic("min", x, fill(0.5)))
    return pointwise.where(small, near, arithmetic("sub", unary("exp", x), fill(1.0)))


def exp_minus_1_below_0(x: Value) -> Value:
    """exp(x) - 1 for x up to about 0."""
    t = unary("tanh", arithmetic("mul", x, fill(0.5)))
    return arithmetic("div", arithmetic("mul", fill(2.0), t), arithmetic("sub", fill(1.0), t))


def log_1_plus(x: Value) -> Value:
    """log(1 + x) without losing digits near 0: what rounding 1 + x loses is put back as a factor."""
    grown = arithmetic("add", fill(1.0), x)
    kept = arithmetic("sub", grown, fill(1.0))
    lost = comparison("eq", kept, fill(0.0))
    factor = arithmetic("div", x, pointwise.where(lost, fill(1.0), kept))
    far = comparison("gt", x, fill(1e30))  # there x / (x + 1 - 1) may be infinity / infinity
    corrected = arithmetic("mul", unary("log", grown), pointwise.where(far, fill(1.0), factor))
    return pointwise.where(lost, x, corrected)


SINH_NEAR = (1 / 362880, 1 / 5040, 1 / 120, 1 / 6, 1.0)
"""sinh(x) / x in powers of x**2, the highest first: within half a unit in the last place for |x| <= 1."""


def sinh(x: Value) -> Value:
    """The hyperbolic sine: a series where e**x and e**-x would cancel; e**x in two factors where it would overflow."""
    near = arithmetic("mul", x, _polynomial(arithmetic("mul", x, x), SINH_NEAR))
    root, decay = _half_exponentials(x)
    size = arithmetic("sub", root, decay)
    far = pointwise.where(comparison("lt", x, fill(0.0)), unary("neg", size), size)
    return pointwise.where(comparison("le", unary("abs", x), fill(1.0)), near, far)


def cosh(x: Value) -> Value:
    """The hyperbolic cosine."""
    return arithmetic("add", *_half_exponentials(x))


def _half_exponentials(x: Value) -> tuple[Value, Value]:
    """e**|x| / 2 and e**-|x| / 2."""
    root = unary("exp", arithmetic("mul", unary("abs", x), fill(0.5)))
    half = arithmetic("mul", fill(0.5), root)
    return arithmetic("mul", half, root), arithmetic("div", arithmetic("div", fill(0.5), root), root)


def asinh(x: Value) -> Value:
    """The inverse of sinh: log(1 + |x| + x**2 / (1 + sqrt(x**2 + 1))), where x**2 overflows log(|x|) + log(2)."""
    size = unary("abs", x)
    near = arithmetic("min", size, fill(1e10))
    square = arithmetic("mul", near, near)
    root = arithmetic("add", fill(1.0), unary("sqrt", arithmetic("add", square, fill(1.0))))
    inner = log_1_plus(arithmetic("add", near, arithmetic("div", square, root)))
    return _signed(x, pointwise.where(comparison("gt", size, fill(1e10)), _log_of_double(size), inner))


def acosh(x: Value) -> Value:
    """The inverse of cosh: log(1 + t + sqrt(t (t + 2))) with t = x - 1."""
    t = arithmetic("sub", arithmetic("min", x, fill(1e10)), fill(1.0))
    root = unary("sqrt", arithmetic("mul", t, arithmetic("add", t, fill(2.0))))
    inner = pointwise.where(comparison("lt", t, fill(0.0)), fill(math.nan), log_1_plus(arithmetic("add", t, root)))
    return pointwise.where(comparison("gt", x, fill(1e10)), _log_of_double(x), inner)


def atanh(x: Value) -> Value:
    """The inverse of tanh: log(1 + 2 |x| / (1 - |x|)) / 2."""
    size = unary("abs", x)
    ratio = arithmetic("div", arithmetic("add", size, size), arithmetic("sub", fill(1.0), size))
    return _signed(x, arithmetic("mul", fill(0.5), log_1_plus(ratio)))


def _log_of_double(x: Value) -> Value:
    return arithmetic("add", unary("log", x), fill(0.6931471805599453))


def _signed(x: Value, size: Value) -> Value:
    """`size` with the sign of `x`; 0 as it is."""
    signed = pointwise.where(comparison("lt", x, fill(0.0)), unary("neg", size), size)
    return pointwise.where(comparison("eq", x, fill(0.0)), x, signed)


TANHSHRINK_NEAR = (929569 / 638512875, -21844 / 6081075, 1382 / 155925, -62 / 2835, 17 / 315, -2 / 15, 1 / 3)
"""(x - tanh(x)) / x**3 in powers of x**2, the highest first, for |x| <= 0.4."""


def minus_tanh(x: Value) -> Value:
    """x - tanh(x): a series near 0, where both are alike."""
    square = arithmetic("mul", x, x)
    near = arithmetic("mul", arithmetic("mul", square, x), _polynomial(square, TANHSHRINK_NEAR))
    return pointwise.where(comparison("le", unary("abs", x), fill(0.4)), near, arithmetic("sub", x, unary("tanh", x)))


def scaled(x: Value, factor: float) -> Value:
    """factor * x."""
    return x if factor == 1 else arithmetic("mul", fill(factor), x)
