"""Functions of one element that RA lacks, from those it has, accurate to single precision."""

from __future__ import annotations

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


def scaled(x: Value, factor: float) -> Value:
    """factor * x."""
    return x if factor == 1 else arithmetic("mul", fill(factor), x)
