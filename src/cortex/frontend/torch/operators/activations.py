"""Activation functions, as torch.nn.functional and the modules have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cortex.frontend import movement, pointwise
from cortex.frontend.builder import Value
from cortex.frontend.elementary import erf, exp_minus_1_below_0, log_1_plus, minus_tanh, scaled
from cortex.frontend.pointwise import arithmetic, comparison, fill, unary
from cortex.frontend.tensor import value_of
from cortex.frontend.torch.refusals import RANDOM, Unsupported
from cortex.frontend.torch.tensor import TorchTensor


def _relu(input: TorchTensor) -> Value:
    return arithmetic("max", value_of(input), fill(0.0))


def _hardtanh(input: TorchTensor, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    return arithmetic("min", arithmetic("max", value_of(input), fill(min_val)), fill(max_val))


def _leaky_relu(input: TorchTensor, negative_slope: float = 0.01) -> Value:
    x = value_of(input)
    return pointwise.where(comparison("gt", x, fill(0.0)), x, scaled(x, negative_slope))


def _prelu(input: TorchTensor, weight: Any) -> Value:
    """Torch has given the slope the shape that it needs."""
    x = value_of(input)
    return pointwise.where(comparison("gt", x, fill(0.0)), x, arithmetic("mul", value_of(weight), x))


def _elu(input: TorchTensor, alpha: float = 1.0, scale: float = 1, input_scale: float = 1) -> Value:
    x = value_of(input)
    below = exp_minus_1_below_0(scaled(arithmetic("min", x, fill(0.0)), input_scale))
    return pointwise.where(comparison("gt", x, fill(0.0)), scaled(x, scale), scaled(below, alpha * scale))


def _celu(input: TorchTensor, alpha: float = 1.0) -> Value:
    return _elu(input, alpha, 1, 1 / alpha)


def _gelu(input: TorchTensor, approximate: str = "none") -> Value:
    x = value_of(input)
    if approximate == "tanh":  # (1 + tanh(z)) / 2 is sigmoid(2 z), which keeps its digits where tanh(z) is near -1
        cube = arithmetic("mul", arithmetic("mul", x, x), x)
        inner = scaled(arithmetic("add", x, scaled(cube, 0.044715)), 2 * math.sqrt(2 / math.pi))
        return arithmetic("mul", x, unary("sigmoid", inner))
    if approximate != "none":
        raise Unsupported(f"approximate={approximate!r}: 'none' and 'tanh' are accepted.")
    gate = erf(scaled(x, math.sqrt(0.5)))
    return arithmetic("mul", scaled(x, 0.5), arithmetic("add", fill(1.0), gate))


def _silu(input: TorchTensor) -> Value:
    x = value_of(input)
    return arithmetic("mul", x, unary("sigmoid", x))


def _softplus(input: TorchTensor, beta: float = 1, threshold: float = 20) -> Value:
    """log(1 + exp(beta x)) / beta; beyond the threshold, x itself."""
    x = value_of(input)
    inner = scaled(x, beta)
    bent = scaled(_log_1_plus_exp(inner), 1 / beta)
    return pointwise.where(comparison("gt", inner, fill(threshold)), x, bent)


def _log_1_plus_exp(x: Value) -> Value:
    decay = log_1_plus(unary("exp", unary("neg", unary("abs", x))))
    return arithmetic("add", arithmetic("max", x, fill(0.0)), decay)


def _logsigmoid(input: TorchTensor) -> Value:
    return unary("neg", _log_1_plus_exp(unary("neg", value_of(input))))


def _mish(input: TorchTensor) -> Value:
    x = value_of(input)
    return arithmetic("mul", x, unary("tanh", _log_1_plus_exp(x)))


def _tanhshrink(input: TorchTensor) -> Value:
    return minus_tanh(value_of(input))


def _hardshrink(input: TorchTensor, lambd: float = 0.5) -> Value:
    x = value_of(input)
    return pointwise.where(comparison("le", unary("abs", x), fill(lambd)), fill(0.0), x)  # NaN stays


def _softshrink(input: TorchTensor, lambd: float = 0.5) -> Value:
    x = value_of(input)
    return arithmetic("sub", x, arithmetic("min", arithmetic("max", x, fill(-lambd)), fill(lambd)))


def _hardsigmoid(input: TorchTensor) -> Value:
    shifted = arithmetic("add", scaled(value_of(input), 1 / 6), fill(0.5))
    return arithmetic("min", arithmetic("max", shifted, fill(0.0)), fill(1.0))


def _hardswish(input: TorchTensor) -> Value:
    return arithmetic("mul", value_of(input), _hardsigmoid(input))


def _threshold(input: TorchTensor, threshold: float, value: float) -> Value:
    x = value_of(input)
    return pointwise.where(comparison("le", x, fill(threshold)), fill(value), x)  # NaN stays


def _glu(input: TorchTensor, dim: int = -1) -> Value:
    x = value_of(input)
    first, second = movement.split(x, 2, dim % len(x.shape))
    return arithmetic("mul", first, unary("sigmoid", second))


def _rrelu(
    input: TorchTensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Value:
    if training:
        raise Unsupported(RANDOM)
    return _leaky_relu(input, (lower + upper) / 2)


def _dropout(input: TorchTensor, p: float, train: bool | None) -> Any:
    """Nothing, in evaluation."""
    if train and p > 0:
        raise Unsupported(RANDOM)
    return input


RULES: dict[str, Callable[..., Any]] = {
    "relu": _relu, "hardtanh": _hardtanh, "leaky_relu": _leaky_relu, "elu": _elu, "celu": _celu, "silu": _silu,
    "mish": _mish,
    "hardsigmoid": _hardsigmoid, "hardswish": _hardswish, "threshold": _threshold, "rrelu": _rrelu,
    "_prelu_kernel": _prelu, "gelu": _gelu, "softplus": _softplus, "hardshrink": _hardshrink,
    "softshrink": _softshrink, "glu": _glu, "log_sigmoid": _logsigmoid,
    **dict.fromkeys(("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"), _dropout),
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {"F.tanhshrink": _tanhshrink}
"""Torch subtracts, which loses digits near 0."""
