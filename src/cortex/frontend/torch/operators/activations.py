"""Activation functions, as torch.nn.functional and the modules have them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import Value
from cortex.frontend.elementary import erf, exp_minus_1_below_0, log_1_plus, minus_tanh, scaled
from cortex.frontend.pointwise import arithmetic, comparison, fill, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.operators.inplace import in_place
from cortex.frontend.torch.refusals import RANDOM, Unsupported

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _switched(run: Callable[..., Value]) -> Callable[..., Any]:
    """With the last argument `inplace` of torch.nn.functional."""
    signature = inspect.signature(run)
    last = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
    signature = signature.replace(parameters=[*signature.parameters.values(), last])

    @wraps(run)
    def either(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        return in_place(run)(**given) if given.pop("inplace", False) else run(**given)

    either.__signature__ = signature  # type: ignore[attr-defined]
    return either


def _relu(input: Any) -> Value:
    return arithmetic("max", value_of(input), fill(0.0))


def _relu6(input: Any) -> Value:
    return arithmetic("min", _relu(input), fill(6.0))


def _hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    return arithmetic("min", arithmetic("max", value_of(input), fill(min_val)), fill(max_val))


def _leaky_relu(input: Any, negative_slope: float = 0.01) -> Value:
    x = value_of(input)
    return pointwise.where(comparison("gt", x, fill(0.0)), x, scaled(x, negative_slope))


def _prelu(input: Any, weight: Any) -> Value:
    """The slope is one for all, or one for each element of axis 1."""
    x, slope = value_of(input), value_of(weight)
    if slope.shape and slope.shape[0] > 1:
        slope = movement.reshape(slope, (slope.shape[0], *(1 for _ in x.shape[2:])))
    elif slope.shape:
        slope = movement.reshape(slope, ())
    return pointwise.where(comparison("gt", x, fill(0.0)), x, arithmetic("mul", slope, x))


def _scaled_elu(input: Any, alpha: float = 1.0, scale: float = 1, input_scale: float = 1) -> Value:
    x = value_of(input)
    below = exp_minus_1_below_0(scaled(arithmetic("min", x, fill(0.0)), input_scale))
    return pointwise.where(comparison("gt", x, fill(0.0)), scaled(x, scale), scaled(below, alpha * scale))


def _elu(input: Any, alpha: float = 1.0) -> Value:
    return _scaled_elu(input, alpha)


def _celu(input: Any, alpha: float = 1.0) -> Value:
    return _scaled_elu(input, alpha, 1, 1 / alpha)


def _selu(input: Any) -> Value:
    return _scaled_elu(input, SELU_ALPHA, SELU_SCALE)


def _gelu(input: Any, approximate: str = "none") -> Value:
    x = value_of(input)
    if approximate == "tanh":  # (1 + tanh(z)) / 2 is sigmoid(2 z), which keeps its digits where tanh(z) is near -1
        cube = arithmetic("mul", arithmetic("mul", x, x), x)
        inner = scaled(arithmetic("add", x, scaled(cube, 0.044715)), 2 * math.sqrt(2 / math.pi))
        return arithmetic("mul", x, unary("sigmoid", inner))
    if approximate != "none":
        raise Unsupported(f"approximate={approximate!r}: 'none' and 'tanh' are accepted.")
    gate = erf(scaled(x, math.sqrt(0.5)))
    return arithmetic("mul", scaled(x, 0.5), arithmetic("add", fill(1.0), gate))


def _silu(input: Any) -> Value:
    x = value_of(input)
    return arithmetic("mul", x, unary("sigmoid", x))


def _softplus(input: Any, beta: float = 1, threshold: float = 20) -> Value:
    """log(1 + exp(beta x)) / beta; beyond the threshold, x itself."""
    x = value_of(input)
    inner = scaled(x, beta)
    bent = scaled(_log_1_plus_exp(inner), 1 / beta)
    return pointwise.where(comparison("gt", inner, fill(threshold)), x, bent)


def _log_1_plus_exp(x: Value) -> Value:
    decay = log_1_plus(unary("exp", unary("neg", unary("abs", x))))
    return arithmetic("add", arithmetic("max", x, fill(0.0)), decay)


def _logsigmoid(input: Any) -> Value:
    return unary("neg", _log_1_plus_exp(unary("neg", value_of(input))))


def _mish(input: Any) -> Value:
    x = value_of(input)
    return arithmetic("mul", x, unary("tanh", _log_1_plus_exp(x)))


def _softsign(input: Any) -> Value:
    x = value_of(input)
    return arithmetic("div", x, arithmetic("add", fill(1.0), unary("abs", x)))


def _tanhshrink(input: Any) -> Value:
    return minus_tanh(value_of(input))


def _hardshrink(input: Any, lambd: float = 0.5) -> Value:
    x = value_of(input)
    return pointwise.where(comparison("le", unary("abs", x), fill(lambd)), fill(0.0), x)  # NaN stays


def _softshrink(input: Any, lambd: float = 0.5) -> Value:
    x = value_of(input)
    return arithmetic("sub", x, arithmetic("min", arithmetic("max", x, fill(-lambd)), fill(lambd)))


def _hardsigmoid(input: Any) -> Value:
    shifted = arithmetic("add", scaled(value_of(input), 1 / 6), fill(0.5))
    return arithmetic("min", arithmetic("max", shifted, fill(0.0)), fill(1.0))


def _hardswish(input: Any) -> Value:
    return arithmetic("mul", value_of(input), _hardsigmoid(input))


def _threshold(input: Any, threshold: float, value: float) -> Value:
    x = value_of(input)
    return pointwise.where(comparison("le", x, fill(threshold)), fill(value), x)  # NaN stays


def _glu(input: Any, dim: int = -1) -> Value:
    x = value_of(input)
    first, second = movement.split(x, 2, dim % len(x.shape))
    return arithmetic("mul", first, unary("sigmoid", second))


def _rrelu(input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Value:
    if training:
        raise Unsupported(RANDOM)
    return _leaky_relu(input, (lower + upper) / 2)


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Nothing, in evaluation."""
    if training and p > 0:
        raise Unsupported(RANDOM)
    return input


def _native_dropout(input: Any, p: float, train: bool) -> Any:
    return _dropout(input, p, train)


SWITCHED: dict[str, Callable[..., Value]] = {
    "relu": _relu, "relu6": _relu6, "hardtanh": _hardtanh, "leaky_relu": _leaky_relu, "elu": _elu, "celu": _celu,
    "selu": _selu, "silu": _silu, "mish": _mish, "hardsigmoid": _hardsigmoid, "hardswish": _hardswish,
    "threshold": _threshold, "rrelu": _rrelu,
}  # fmt: skip
"""Those that have an argument `inplace` in torch.nn.functional."""

DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")

NATIVE_DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **SWITCHED,
    **{f"F.{name}": _switched(run) for name, run in SWITCHED.items()},
    "prelu": _prelu, "gelu": _gelu, "softplus": _softplus, "softsign": _softsign, "tanhshrink": _tanhshrink,
    "hardshrink": _hardshrink, "softshrink": _softshrink, "glu": _glu,
    **dict.fromkeys(("logsigmoid", "log_sigmoid"), _logsigmoid),
    **{f"F.{name}": _dropout for name in DROPOUTS},
    **{f"torch.{name}": _native_dropout for name in NATIVE_DROPOUTS},
}  # fmt: skip
