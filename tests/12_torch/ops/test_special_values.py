"""Operators at special values, compiled: zeros, denormals, where functions cancel or overflow, infinities, NaN.

One model holds a family of operators, applied to a vector of all values. The judge is torch in double precision,
rounded to single precision: a result may be off by 1.3e-6 of it (what torch.testing allows), or by twice what torch
itself is off in single precision. There is no absolute tolerance but a few denormals, so digits lost near 0 show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from frontend_meaning import Node

import cortex
from cortex.frontend.torch.mode import symbolic, tracing_mode

Operators = dict[str, Callable[..., Any]]

inf, nan = math.inf, math.nan
SPECIAL = torch.tensor([
    0.0, -0.0, 1e-45, -1e-40, 1.2e-38, 1e-20, -1e-8, 1e-8, 3e-5, -1e-4, 1e-4, 1e-3, 0.1, -0.3, 0.49, 0.5, -0.5, 0.7,
    1.0, -1.0, 1.5, -1.5, 2.5, 3.0, -3.0, 3.74, -3.8, 5.9, -6.0, 9.0, 15.0, 19.5, 20.5, -20.0, -40.0, 64.0, -64.0, 88.0,
    -88.0, 88.8, 89.0, 104.0, -104.0, 1e10, -1e10, 3e19, 3e38, -3e38, inf, -inf, nan,
])  # fmt: skip
FEW = torch.tensor([0.0, -0.0, 1e-8, -1e-4, 0.5, 1.0, -1.0, 2.5, -2.5, 88.0, -104.0, 1e10, 3e38, inf, -inf, nan])
ROWS = torch.tensor([
    [1.0, 2.0, 3.0, 2.0], [nan, 1.0, nan, 5.0], [1.0, nan, 2.0, inf], [-inf, -inf, -inf, -inf], [inf, inf, 1.0, 2.0],
    [inf, -inf, 1.0, 2.0], [-inf, 1.0, 2.0, -inf], [3e38, 3e38, 1.0, 0.0], [0.0, -0.0, 0.0, -0.0],
    [1e-45, 1e-40, 0.0, -1e-40], [88.0, 89.0, -104.0, 88.0], [1e10, 1e10, 1e10, -1e10], [5.0, 5.0, 5.0, 5.0],
    [nan, nan, nan, nan], [2.0, -5.0, 5.0, -5.0],
])  # fmt: skip


def compiled(operators: Operators, inputs: dict[str, torch.Tensor]) -> list[Any]:
    node = Node(**inputs)

    def traced(node: Any) -> Any:
        with tracing_mode({}):
            return tuple(symbolic(run(*(getattr(node, name) for name in inputs))) for run in operators.values())

    found = cortex.compile(cortex.model(traced), {}, examples=[node], check=False)(node)
    return [np.asarray(found[i]) for i in range(len(operators))]


def wrong(found: Any, single: torch.Tensor, double: torch.Tensor) -> Any:
    """Where `found` is neither what torch computes in single nor about what it computes in double precision."""
    with np.errstate(all="ignore"):
        own, right = single.numpy().astype(np.float64), double.numpy().astype(np.float32)
        found = found.astype(np.float64)
        slack = np.abs(own - right)
        near = 1.3e-6 * np.abs(right) + 2 * np.where(np.isfinite(slack), slack, 0) + 2e-44
        fine = (np.abs(found - right) <= near) | (found == right) | (np.isnan(found) & np.isnan(right))
    return ~(fine | (found == own) | (np.isnan(found) & np.isnan(own)))


def agree(operators: Operators, **inputs: torch.Tensor) -> None:
    doubles = [x.double() for x in inputs.values()]
    for (name, run), found in zip(operators.items(), compiled(operators, inputs), strict=True):
        bad = wrong(found, run(*inputs.values()), run(*doubles))
        assert not bad.any(), f"{name} at {[float(x[bad][0]) for x in inputs.values() if x.shape == bad.shape]}"


def named(owner: Any, names: str) -> Operators:
    return {name: getattr(owner, name) for name in names.split()}


ELEMENTARY: Operators = {
    **named(
        torch,
        "exp log sqrt rsqrt reciprocal tanh sigmoid neg abs sign square expm1 log1p erf sinh cosh exp2 log2 log10 "
        "logit relu nan_to_num isnan isinf isfinite",
    ),
    "2 ** x": lambda x: 2**x, "0.1 ** x": lambda x: torch.pow(0.1, x), "0 ** x": lambda x: torch.pow(0.0, x),
    "1 ** x": lambda x: torch.pow(1, x), "inf ** x": lambda x: torch.pow(inf, x),
    **{
        f"{name} {c}": lambda x, run=run, c=c: run(x, c)
        for c in (0.0, -0.0, inf, nan)
        for name, run in {
            "x *": lambda x, c: x * c, "x /": lambda x, c: x / c, "over x": lambda x, c: c / x,
            "x +": lambda x, c: x + c, "minus x": lambda x, c: c - x, "x <": lambda x, c: x < c,
            "fill": lambda x, c: x.masked_fill(x > 0, c), "where": lambda x, c: torch.where(x > 0, x, c),
        }.items()
    },
}  # fmt: skip

ACTIVATIONS: Operators = {
    **named(
        F,
        "relu relu6 elu celu selu gelu silu mish softplus softsign hardshrink softshrink hardsigmoid hardswish "
        "hardtanh leaky_relu logsigmoid rrelu",
    ),
    "softplus(2, 10)": lambda x: F.softplus(x, 2.0, 10.0), "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "celu(0.5)": lambda x: F.celu(x, 0.5), "hardtanh(-2, 5)": lambda x: F.hardtanh(x, -2.0, 5.0),
    "clamp": lambda x: x.clamp(-1, 2), "clamp_min": lambda x: x.clamp(min=0.5), "clamp_max": lambda x: x.clamp(max=0.5),
    "hardshrink(2)": lambda x: F.hardshrink(x, 2.0), "logit(eps)": lambda x: torch.logit(x, 1e-3),
    "maximum": lambda x: torch.maximum(x, torch.tensor(1.0)), "minimum": lambda x: torch.minimum(x, torch.tensor(1.0)),
}  # fmt: skip

POWERS = (0, 1, 2, 3, 7, -1, -2, -3, 16, -16, 0.5, -0.5, 1.5, -0.7, 1 / 3, -2.5, 2**24 + 1, 2.0**40, inf, -inf, nan)
LARGE_POWERS = (17, -101, 99.5)
HUGE_POWERS = (1025, -(10**6) - 1, 10**9)
NEAR_1 = torch.cat([torch.linspace(0.4, 2.2, 150), 1 + torch.linspace(-8e-5, 8e-5, 150), SPECIAL])
"""Where products in a row would lose a digit for each ten of them."""

BINARY: Operators = {
    **named(
        torch,
        "add sub mul div maximum minimum fmax fmin lt le gt ge eq ne logaddexp logical_and logical_or logical_xor",
    ),
    "lerp(0.3)": lambda x, y: torch.lerp(x, y, 0.3), "lerp(0.8)": lambda x, y: torch.lerp(x, y, 0.8),
    "lerp(x)": lambda x, y: torch.lerp(x, y, torch.sigmoid(x)), "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=2), "clamp": lambda x, y: torch.clamp(x, min=y),
    "add(alpha=0)": lambda x, y: torch.add(x, y, alpha=0), "max": torch.max, "min": torch.min,
    "glu": lambda x, y: F.glu(torch.stack([x, y]), 0),
}  # fmt: skip

REDUCTIONS: Operators = {
    **{
        name: lambda x, run=run: run(x, dim=1)
        for name, run in named(
            torch, "sum mean prod amax amin argmax argmin softmax log_softmax logsumexp norm all any"
        ).items()
    },
    "max": lambda x: x.max(1).values, "max at": lambda x: x.max(1).indices, "min": lambda x: x.min(1).values,
    "min at": lambda x: x.min(1).indices, "largest": lambda x: x.max(), "argmax of all": lambda x: x.argmax(),
    "argmin of columns": lambda x: x.argmin(0), "keepdim": lambda x: x.argmax(1, keepdim=True),
    "masked": lambda x: x.masked_fill(x > 1, -inf).softmax(1),
    "log of masked": lambda x: x.masked_fill(x > 1, -inf).log_softmax(1),
    "zeros": lambda x: x @ torch.zeros(4, 2).to(x.dtype) if type(x) is torch.Tensor else x @ torch.zeros(4, 2),
    "norm 3": lambda x: x.norm(3, 1), "norm 0.5": lambda x: x.norm(0.5, 1), "norm -1": lambda x: x.norm(-1, 1),
    "norm 1": lambda x: torch.linalg.vector_norm(x, 1, dim=1), "norm inf": lambda x: x.norm(inf, 1),
}  # fmt: skip


def powers(exponents: tuple[float, ...]) -> Operators:
    return {f"x ** {p}": lambda x, p=p: x**p for p in exponents}


@pytest.mark.parametrize(
    "operators", [ELEMENTARY, ACTIVATIONS, powers(POWERS)], ids=["elementary", "activations", "powers"]
)
def test_functions_of_one_element(operators: Operators) -> None:
    agree(operators, x=SPECIAL)


@pytest.mark.parametrize("exponents", [LARGE_POWERS, HUGE_POWERS], ids=["large", "huge"])
def test_powers_keep_their_digits(exponents: tuple[float, ...]) -> None:
    agree(powers(exponents), x=NEAR_1)


def test_functions_of_two_elements() -> None:
    agree(BINARY, x=FEW.repeat_interleave(len(FEW)), y=FEW.repeat(len(FEW)))


def test_reductions() -> None:
    agree(REDUCTIONS, x=ROWS)
