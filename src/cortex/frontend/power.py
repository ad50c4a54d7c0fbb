"""Powers with one constant side, to single precision: x ** p and p ** x.

A rounded logarithm would lose digits (and the sign of x), so a power is made of products, square roots and one small
exponential: x ** 100.3 = x ** 100 * x ** (1/4) * exp(0.05 * log x). Many products in a row would add up their rounding
errors; they carry what was rounded off along (`_product`), as pairs of a number and a rest. The meaning is that of
IEEE 754's pow, as in NumPy and torch: x ** 0 is 1 for every x, and a negative x has whole powers only.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import arithmetic, as_float, comparison, fill, unary
from cortex.frontend.spans import fail

Pair: TypeAlias = tuple[Value, Value]
"""A number in single precision, and the rest that it lacks."""

MOST_PLAIN = 16
"""Whole powers up to here are plain products: at most 8 units in the last place are lost."""
MOST_SQUARED = 1023
"""Whole powers above are different from 0 and infinity only near 1, where the logarithm can be had in two parts."""
BEYOND = 2.0**32
"""Powers from here on are 0, 1 or infinite: the float next to 1 is 1 - 2**-24."""
LOG_TERMS = 12
"""Of the series of the logarithm, for numbers within 1/8 of 1."""
ROOTS = 5
"""How many square roots in a row are taken before the rest of a fraction, below 2**-ROOTS, is left to exp and log."""
SPLITTER = 4097.0
"""x * SPLITTER - (x * SPLITTER - x) is x rounded to half of its 24 bits."""
LARGE = 1e30
"""Halves of numbers below are finite; so large a product has few factors still to come."""


def power(x: Value, exponent: object) -> Value:
    """`x ** exponent` for a number."""
    if isinstance(exponent, bool) or not isinstance(exponent, int | float | np.integer | np.floating):
        raise fail(
            "`**` needs a number as exponent. For a computed exponent p of a positive x write "
            "cortex.exp(p * cortex.log(x))."
        )
    p, x = _rounded(exponent), as_float(x)
    if math.isnan(p):
        return pointwise.where(comparison("eq", x, fill(1.0)), x, fill(math.nan))
    if abs(p) >= BEYOND:
        return _limit(x, p)
    whole = math.floor(abs(p))
    fraction = abs(p) - whole
    if not fraction:
        return _whole(x, int(p))
    if p == 0.5:
        return unary("sqrt", x)
    if p == -0.5:
        return arithmetic("div", fill(1.0), unary("sqrt", x))
    size = unary("abs", x)
    root = _fraction(size, fraction)
    if p > 0:
        result = arithmetic("mul", _whole(size, whole), root) if whole else root
    else:
        result = arithmetic("div", _whole(size, -whole), root)
    finite = comparison("gt", x, fill(-math.inf))
    is_negative = pointwise.logical("and", comparison("lt", x, fill(0.0)), finite)
    return pointwise.where(is_negative, fill(math.nan), result)


def raised(base: float, x: Value) -> Value:
    """`base ** x` for a number that is not negative.

    The product x * log(base) is taken in two parts, the first of which is exact.
    """
    base, x = _rounded(base), as_float(x)
    if base == 1:
        return fill(1.0, x.shape)
    if base in (0.0, math.inf):
        grows = comparison("gt" if base else "lt", x, fill(0.0))
        ends = pointwise.where(grows, fill(math.inf), fill(0.0))
        known = pointwise.where(comparison("eq", x, fill(0.0)), fill(1.0), ends)
        return pointwise.where(comparison("ne", x, x), x, known)
    log = math.log(base)
    shift = math.frexp(log)[1] - 11
    high = math.ldexp(round(math.ldexp(log, -shift)), shift)
    near = _between(x, -200 / abs(log), 200 / abs(log))
    first, second = _halves(near)
    rest = arithmetic("add", arithmetic("mul", first, fill(log - high)), arithmetic("mul", second, fill(log)))
    root = unary("exp", arithmetic("mul", first, fill(high / 2)))
    return arithmetic("mul", arithmetic("mul", root, unary("exp", rest)), root)


def _rounded(number: int | float | np.number) -> float:
    """A number as single precision has it, which is what torch and NumPy compute with."""
    with np.errstate(over="ignore"):
        return float(np.float32(float(number)))


def _limit(x: Value, p: float) -> Value:
    """The power of an exponent so large, and even, that only 1 and -1 give something else than 0 and infinity."""
    size = unary("abs", x)
    above, below = (fill(math.inf), fill(0.0)) if p > 0 else (fill(0.0), fill(math.inf))
    ends = pointwise.where(comparison("gt", size, fill(1.0)), above, size)
    return pointwise.where(comparison("lt", size, fill(1.0)), below, ends)


def _whole(x: Value, n: int) -> Value:
    if abs(n) > MOST_PLAIN:
        return _many(x, n)
    if n >= 0:
        return _few(x, n)
    if n >= -2:
        return arithmetic("div", fill(1.0), _few(x, -n))
    # Half of the power at a time: a result may be a small number where its reciprocal is too large for one.
    return arithmetic("div", arithmetic("div", fill(1.0), _few(x, -n // 2)), _few(x, (1 - n) // 2))


def _few(x: Value, n: int) -> Value:
    """x ** n by squaring."""
    if n == 0:
        return fill(1.0, x.shape)
    half, result = x, None
    while True:
        if n % 2:
            result = half if result is None else arithmetic("mul", result, half)
        n //= 2
        if not n:
            assert result is not None
            return result
        half = arithmetic("mul", half, half)


def _many(x: Value, n: int) -> Value:
    size = unary("abs", x)
    found = _squared(size, n) if abs(n) <= MOST_SQUARED else _near_one(size, n)
    if n % 2 == 0:
        return found
    is_negative = comparison("lt", x, fill(0.0))
    if n < 0:  # of -0.0, the power is -inf
        below = comparison("lt", arithmetic("div", fill(1.0), x), fill(0.0))
        is_negative = pointwise.logical("or", is_negative, below)
    return pointwise.where(is_negative, unary("neg", found), found)


def _squared(x: Value, n: int) -> Value:
    """x ** n by squaring pairs. Numbers outside 2**-20..2**20 are moved there: their powers are 0 or infinite."""
    near = _between(x, 2.0**-20, 2.0**20)
    half = (near, fill(0.0)) if n > 0 else _reciprocal(near)
    result: Pair | None = None
    left = abs(n)
    while left:
        if left % 2:
            result = half if result is None else _product(result, half)
        left //= 2
        half = _product(half, half) if left else half
    assert result is not None
    return arithmetic("add", *result)


def _near_one(x: Value, n: int) -> Value:
    """x ** n as exp(n log x) for |n| >= 1024. The logarithm is d - d**2 / 2 + d**3 (1/3 - d/4 + ...) with d = x - 1.

    Numbers outside 7/8..9/8 are moved there: their powers are 0 or infinite.
    """
    d = arithmetic("sub", _between(x, 0.875, 1.125), fill(1.0))
    square = arithmetic("mul", d, d)
    series = fill((-1.0) ** (LOG_TERMS + 1) / LOG_TERMS)
    for k in range(LOG_TERMS - 1, 2, -1):
        series = arithmetic("add", arithmetic("mul", series, d), fill((-1.0) ** (k + 1) / k))
    half = arithmetic("mul", square, fill(0.5))
    log = arithmetic("sub", d, half)
    lost = arithmetic("sub", arithmetic("sub", d, log), half)  # by the subtraction; that is exact, as d is the larger
    lost = arithmetic("sub", lost, arithmetic("mul", _rounded_off(d, d, square), fill(0.5)))
    lost = arithmetic("add", lost, arithmetic("mul", arithmetic("mul", square, d), series))
    product = arithmetic("mul", log, fill(n))
    rounded_off = _error(_halves(log), _constant_halves(n), product)
    rest = arithmetic("add", rounded_off, arithmetic("mul", lost, fill(n)))
    root = unary("exp", arithmetic("mul", product, fill(0.5)))
    return arithmetic("mul", arithmetic("mul", root, unary("exp", rest)), root)


def _fraction(x: Value, f: float) -> Value:
    """x ** f for x >= 0 and 0 < f < 1."""
    result: Value | None = None
    root, step = x, 1.0
    for _ in range(ROOTS):
        root, step = unary("sqrt", root), step / 2
        if f >= step:
            result = root if result is None else arithmetic("mul", result, root)
            f -= step
    if f:
        rest = unary("exp", arithmetic("mul", unary("log", x), fill(f)))
        result = rest if result is None else arithmetic("mul", result, rest)
    assert result is not None
    return result


def _product(x: Pair, y: Pair) -> Pair:
    """x * y with the rest of about twice the precision; without one where it is large (see LARGE)."""
    (a, a_rest), (b, b_rest) = x, y
    product = arithmetic("mul", a, b)
    cross = arithmetic("add", arithmetic("mul", a, b_rest), arithmetic("mul", a_rest, b))
    lost = pointwise.where(comparison("lt", product, fill(LARGE)), _rounded_off(a, b, product), fill(0.0))
    rest = pointwise.where(comparison("lt", product, fill(math.inf)), arithmetic("add", lost, cross), fill(0.0))
    return product, rest


def _reciprocal(x: Value) -> Pair:
    """1 / x."""
    found = arithmetic("div", fill(1.0), x)
    product = arithmetic("mul", found, x)
    missing = arithmetic("sub", arithmetic("sub", fill(1.0), product), _rounded_off(found, x, product))
    return found, arithmetic("mul", missing, found)


def _rounded_off(x: Value, y: Value, product: Value) -> Value:
    """x * y - product, where `product` is the rounded one."""
    return _error(_halves(x), _halves(y), product)


def _error(x: Pair, y: Pair, product: Value) -> Value:
    """x * y - product from the halves of two numbers: exact, by Dekker's algorithm."""
    (a, b), (c, d) = x, y
    found = arithmetic("sub", arithmetic("mul", a, c), product)
    found = arithmetic("add", arithmetic("add", found, arithmetic("mul", a, d)), arithmetic("mul", b, c))
    return arithmetic("add", found, arithmetic("mul", b, d))


def _halves(x: Value) -> Pair:
    """x as a sum of two numbers of 12 bits each."""
    scaled = arithmetic("mul", x, fill(SPLITTER))
    first = arithmetic("sub", scaled, arithmetic("sub", scaled, x))
    return first, arithmetic("sub", x, first)


def _constant_halves(number: float) -> Pair:
    """The same of a constant, whose arithmetic would be done in double precision."""
    shift = math.frexp(number)[1] - 12
    first = math.ldexp(round(math.ldexp(number, -shift)), shift)
    return fill(first), fill(number - first)


def _between(x: Value, low: float, high: float) -> Value:
    return arithmetic("min", arithmetic("max", x, fill(low)), fill(high))
