"""Arithmetic, comparisons and functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.elementary import (
    acosh,
    asinh,
    atanh,
    cosh,
    erf,
    exp_minus_1,
    log_1_plus,
    scaled,
    sinh,
)
from cortex.frontend.pointwise import ArithmeticFn, ComparisonFn, UnaryFn, arithmetic, comparison, fill, unary
from cortex.frontend.power import power, raised
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.content import Content, Integers, broadcast, integers
from cortex.frontend.torch.exact import checked, is_whole, whole_arithmetic, whole_comparison
from cortex.frontend.torch.refusals import ROUNDING, Unsupported
from cortex.frontend.torch.tensor import TorchTensor

LARGEST = 3.4028234663852886e38
"""The largest finite float32."""


def _of(run: Callable[[Value], Value]) -> Callable[..., Value]:
    """A function of values as a rule."""
    return lambda input: run(value_of(input))


def _unary(fn: UnaryFn) -> Callable[..., Value]:
    return lambda input: unary(fn, value_of(input))


def _binary(fn: ArithmeticFn) -> Callable[..., Value]:
    return lambda input, other: arithmetic(fn, *_both(input, other))


def _comparison(fn: ComparisonFn) -> Callable[..., Content]:
    def run(input: TorchTensor, other: Any) -> Content:
        found = whole_comparison(fn, input, other)
        return found if found is not None else comparison(fn, *_both(input, other))

    return run


def _both(x: Any, y: Any) -> tuple[Value, Value]:
    """Two operands; where both are integers, only if single precision holds them."""
    if all(isinstance(each, int) or is_whole(each) for each in (x, y)):
        x, y = checked(x), checked(y)
    return value_of(x), value_of(y)


def _sum(fn: Literal["add", "sub"], x: Any, y: Any, alpha: float) -> Content:
    found = whole_arithmetic(fn, x, y) if alpha == 1 else None
    if found is not None:
        return found
    a, b = _both(x, y)
    return arithmetic(fn, a, scaled(b, alpha))


def _add(input: TorchTensor, other: Any, alpha: float = 1) -> Content:
    return _sum("add", input, other, alpha)


def _sub(input: TorchTensor, other: Any, alpha: float = 1) -> Content:
    return _sum("sub", input, other, alpha)


def _rsub(input: TorchTensor, other: Any, alpha: float = 1) -> Content:
    return _sum("sub", other, input, alpha)


def _mul(input: TorchTensor, other: Any) -> Content:
    found = whole_arithmetic("mul", input, other)
    return found if found is not None else arithmetic("mul", *_both(input, other))


def _div(input: TorchTensor, other: Any, rounding_mode: str | None = None) -> Content:
    if rounding_mode == "floor":
        return _of_integers("floordiv")(input, other)
    if rounding_mode is not None:
        raise Unsupported(f"rounding_mode={rounding_mode!r}: {ROUNDING}")
    return arithmetic("div", value_of(input), value_of(other))


def _of_integers(fn: Literal["floordiv", "mod"]) -> Callable[..., Content]:
    """What rounds, of integers of nodes and constants."""

    def run(input: TorchTensor, other: Any) -> Content:
        if other == 0 if isinstance(other, int) else isinstance(other, float):
            raise Unsupported(ROUNDING)
        found = whole_arithmetic(fn, input, other)
        if found is None:
            raise Unsupported(ROUNDING)
        return found

    return run


def _reciprocal_times(input: TorchTensor, other: Any) -> Value:
    """`number / tensor`."""
    return arithmetic("div", value_of(other), value_of(input))


def _pow(input: TorchTensor, exponent: Any) -> Value:
    if isinstance(exponent, TorchTensor):
        if isinstance(input, TorchTensor):
            raise Unsupported(
                "the exponent is a tensor. Write torch.exp(p * torch.log(x)), which is the same for positive x."
            )
        if input < 0:
            raise Unsupported(f"{input} to the power of a tensor: only a number that is not negative can be the base.")
        return raised(input, value_of(exponent))
    return power(value_of(input), exponent)


def _square(input: TorchTensor) -> Value:
    return arithmetic("mul", value_of(input), value_of(input))


def _reciprocal(input: TorchTensor) -> Value:
    return arithmetic("div", fill(1.0), value_of(input))


def _rsqrt(input: TorchTensor) -> Value:
    return arithmetic("div", fill(1.0), unary("sqrt", value_of(input)))


def _sign(input: TorchTensor) -> Value:
    x, zero = value_of(input), fill(0.0)
    below = pointwise.where(comparison("lt", x, zero), fill(-1.0), zero)
    return pointwise.where(comparison("gt", x, zero), fill(1.0), below)


def _log_base(base: float) -> Callable[..., Value]:
    return lambda input: arithmetic("mul", unary("log", value_of(input)), fill(1 / math.log(base)))


def _clamp(input: TorchTensor, min: Any = None, max: Any = None) -> Value:
    x = value_of(input)
    if min is not None:
        x = arithmetic("max", x, value_of(min))
    return x if max is None else arithmetic("min", x, value_of(max))


def _where(condition: Any, input: TorchTensor, other: Any) -> Value:
    return pointwise.where(_truth(condition), value_of(input), value_of(other))


def _positions(condition: Any) -> Value:
    raise Unsupported("with a condition only, it gives positions, which depend on values. Give both choices.")


def _masked_fill(input: TorchTensor, mask: Any, value: Any) -> Value:
    return pointwise.where(_truth(mask), value_of(value), value_of(input))


def _lerp(input: TorchTensor, end: Any, weight: Any) -> Value:
    """From the nearer end, as torch does: at weight 1 the result is `end` itself."""
    x, y, w = value_of(input), value_of(end), value_of(weight)
    way = arithmetic("sub", y, x)
    from_start = arithmetic("add", x, arithmetic("mul", w, way))
    from_end = arithmetic("sub", y, arithmetic("mul", way, arithmetic("sub", fill(1.0), w)))
    if isinstance(weight, int | float):
        return from_start if abs(weight) < 0.5 else from_end
    return pointwise.where(comparison("lt", unary("abs", w), fill(0.5)), from_start, from_end)


def _addcmul(input: TorchTensor, tensor1: TorchTensor, tensor2: TorchTensor, value: float = 1) -> Value:
    product = arithmetic("mul", value_of(tensor1), value_of(tensor2))
    return arithmetic("add", value_of(input), scaled(product, value))


def _addcdiv(input: TorchTensor, tensor1: TorchTensor, tensor2: TorchTensor, value: float = 1) -> Value:
    quotient = arithmetic("div", value_of(tensor1), value_of(tensor2))
    return arithmetic("add", value_of(input), scaled(quotient, value))


def _logaddexp(input: TorchTensor, other: Any) -> Value:
    """Equal sides are at distance 0, infinite ones too, whose difference would be NaN."""
    x, y = value_of(input), value_of(other)
    apart = unary("neg", unary("abs", arithmetic("sub", x, y)))
    distance = pointwise.where(comparison("eq", x, y), fill(0.0), apart)
    return arithmetic("add", arithmetic("max", x, y), log_1_plus(unary("exp", distance)))


def _hypot(input: TorchTensor, other: Any) -> Value:
    """The larger side times the root of 1 + the ratio's square: squares would overflow."""
    x, y = unary("abs", value_of(input)), unary("abs", value_of(other))
    large, small = arithmetic("max", x, y), arithmetic("min", x, y)
    odd = pointwise.logical("or", comparison("eq", large, fill(0.0)), comparison("eq", large, fill(math.inf)))
    ratio = arithmetic("div", small, pointwise.where(odd, fill(1.0), large))
    root = unary("sqrt", arithmetic("add", fill(1.0), arithmetic("mul", ratio, ratio)))
    infinite = pointwise.logical("or", comparison("eq", x, fill(math.inf)), comparison("eq", y, fill(math.inf)))
    return pointwise.where(infinite, fill(math.inf), arithmetic("mul", large, pointwise.where(odd, fill(1.0), root)))


def _ignoring_nan(fn: Literal["max", "min"]) -> Callable[..., Value]:
    """`fmax` and `fmin`: a NaN stands back for the other side."""

    def run(input: TorchTensor, other: Any) -> Value:
        x, y = value_of(input), value_of(other)
        left = pointwise.where(_is_nan(x), y, x)
        return arithmetic(fn, left, pointwise.where(_is_nan(y), x, y))

    return run


def _is_nan(x: Value) -> Value:
    return comparison("ne", x, x)


def _is_infinite(input: TorchTensor) -> Value:
    return comparison("eq", unary("abs", value_of(input)), fill(math.inf))


def _is_finite(input: TorchTensor) -> Value:
    return comparison("lt", unary("abs", value_of(input)), fill(math.inf))


def _nan_to_num(
    input: TorchTensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    x = value_of(input)
    top = fill(LARGEST if posinf is None else posinf)
    bottom = fill(-LARGEST if neginf is None else neginf)
    x = pointwise.where(comparison("eq", x, fill(math.inf)), top, x)
    x = pointwise.where(comparison("eq", x, fill(-math.inf)), bottom, x)
    return pointwise.where(_is_nan(x), fill(nan or 0.0), x)


def _logit(input: TorchTensor, eps: float | None = None) -> Value:
    x = value_of(input) if eps is None else _clamp(input, eps, 1 - eps)
    return unary("log", arithmetic("div", x, arithmetic("sub", fill(1.0), x)))


def _truth(x: Any) -> Value:
    """A condition: truth values as they are, numbers where they are not 0."""
    value = value_of(x)
    return value if value.dtype == "bool" else comparison("ne", value, fill(0.0))


def _bits(fn: Any, symbol: str) -> Callable[..., Value]:
    def combine(input: TorchTensor, other: Any) -> Value:
        for side in (input, other):
            if not isinstance(side, bool) and value_of(side).dtype != "bool":
                raise Unsupported(f"bits of integers: `{symbol}` of truth values alone can be compiled.")
        return _xor(input, other) if fn == "xor" else pointwise.logical(fn, _truth(input), _truth(other))

    return combine


def _logical(fn: Any) -> Callable[..., Value]:
    return lambda input, other: pointwise.logical(fn, _truth(input), _truth(other))


def _xor(input: TorchTensor, other: Any) -> Value:
    return comparison("ne", pointwise.as_float(_truth(input)), pointwise.as_float(_truth(other)))


def _not(input: TorchTensor) -> Value:
    return pointwise.negate(_truth(input))


def _invert(input: TorchTensor) -> Value:
    if value_of(input).dtype != "bool":
        raise Unsupported("bits of integers: truth values alone can be compiled.")
    return _not(input)


def _copy(input: TorchTensor, memory_format: Any = None) -> Content:
    held: Content = input._cortex_content()
    return held


def _fill(input: TorchTensor, value: Any) -> Value:
    return pointwise.broadcast_to(value_of(value), input._cortex_shape)


def _zero(input: TorchTensor) -> Value:
    return fill(0.0, input._cortex_shape)


def _copied(input: TorchTensor, src: TorchTensor, non_blocking: bool = False) -> Content:
    return broadcast(src._cortex_content(), input._cortex_shape)


def _negated(input: TorchTensor) -> Content:
    held = input._cortex_content()
    if isinstance(held, Integers) and held.known:
        return integers([-e for e in held.elements.flat], held.shape)
    return unary("neg", value_of(input))


RULES: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _sub, "rsub": _rsub, "mul": _mul, "div": _div, "pow": _pow,
    "floor_divide": _of_integers("floordiv"), "remainder": _of_integers("mod"),
    "maximum": _binary("max"), "minimum": _binary("min"), "fmax": _ignoring_nan("max"), "fmin": _ignoring_nan("min"),
    "neg": _negated, **{name: _unary(name) for name in ("abs", "exp", "log", "sqrt", "tanh", "sigmoid")},
    **{name: _comparison(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "square": _square, "reciprocal": _reciprocal, "rsqrt": _rsqrt, **dict.fromkeys(("sign", "sgn"), _sign),
    "expm1": _of(exp_minus_1), "log1p": _of(log_1_plus), "erf": _of(erf), "sinh": _of(sinh), "cosh": _of(cosh),
    "asinh": _of(asinh), "acosh": _of(acosh), "atanh": _of(atanh), "hypot": _hypot,
    "exp2": lambda input: raised(2.0, value_of(input)), "log2": _log_base(2.0), "log10": _log_base(10.0),
    "logit": _logit, "logaddexp": _logaddexp,
    "isnan": _of(_is_nan), "isinf": _is_infinite, "isfinite": _is_finite, "nan_to_num": _nan_to_num,
    "clamp": _clamp, "clamp_min": lambda input, min: _clamp(input, min),
    "clamp_max": lambda input, max: _clamp(input, None, max),
    "where": _where, "where.default": _positions, "masked_fill": _masked_fill,
    "lerp": _lerp, "addcmul": _addcmul, "addcdiv": _addcdiv,
    "logical_and": _logical("and"), "logical_or": _logical("or"), "logical_xor": _xor, "logical_not": _not,
    "bitwise_and": _bits("and", "&"), "bitwise_or": _bits("or", "|"), "bitwise_xor": _bits("xor", "^"),
    "bitwise_not": _invert,
    "clone": _copy, "fill": _fill, "zero": _zero, "copy.default": _copied,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = dict.fromkeys(("Tensor.__rtruediv__", "Tensor.__rdiv__"), _reciprocal_times)
"""Torch multiplies by the reciprocal."""
