"""Functions, methods and layers of public model code: accepted and right, or refused at the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from public_cases import CASES, SHAPES, WHOLE
from public_layers import LAYERS
from torch_meaning import agrees, traced

import cortex

PUBLIC = {**CASES, **LAYERS}

REFUSED = {
    *(
        f"torch.{name}"
        for name in ["erfc", "frac", "trunc", "floor", "ceil", "round", "sin", "cos", "tan", "atan", "signbit", "sinc"]
    ),
    *(f"torch.{name}(x, y)" for name in ["pow", "atan2", "remainder", "fmod", "floor_divide", "copysign", "ldexp"]),
    *(f"torch.{name}(dim)" for name in ["median", "sort", "logcumsumexp", "cummax"]),
    *(
        f"torch.{name}"
        for name in ["combinations", "masked_select", "bucketize", "searchsorted", "masked_scatter", "float_power"]
    ),
    *(f"torch.{name}" for name in ["lgamma", "div(floor)", "erfinv", "bincount", "histc", "quantile", "where(c)"]),
    *(
        f"x.{name}"
        for name in [
            "pow_(y)",
            "topk(2)",
            "as_strided",
            "diagonal_scatter",
            "nonzero",
            "long()",
            "int()",
            "double()",
            "half()",
        ]
    ),
    *("bitwise", "F.gaussian_nll", "F.gumbel_softmax", "torch.nn.functional.pdist", "nn.ConvTranspose1d"),
}
"""Sines, rounding, order, sizes that depend on values, random numbers, and what is rare."""


def drawn(function: Callable[..., Any], seed: int) -> dict[str, torch.Tensor]:
    """Inputs by the names of the parameters; `k` as three integers."""
    rng = torch.Generator().manual_seed(seed)
    found = {}
    for name in inspect.signature(function).parameters:
        if name in SHAPES:
            found[name] = torch.randn(SHAPES[name], generator=rng)
        elif name == "k":
            found |= {f"k{j}": torch.randint(0, WHOLE["k"][1], (), generator=rng) for j in range(3)}
        elif name in WHOLE:
            found[name] = torch.randint(0, WHOLE[name][1], WHOLE[name][0], generator=rng)
    return found


def written(function: Callable[..., Any]) -> Callable[..., Any]:
    """With `k` put together."""

    def run(k0: Any = None, k1: Any = None, k2: Any = None, **given: Any) -> Any:
        return function(**given) if k0 is None else function(k=torch.stack([k0, k1, k2]), **given)

    return run


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in REFUSED])
def test_it_is_right(name: str) -> None:
    function = PUBLIC[name]
    layer = inspect.signature(function).parameters.get("m")
    agrees(written(function), drawn(function, 1), layer.default if layer is not None else None)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_it_is_refused(name: str) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        traced(written(PUBLIC[name]), drawn(PUBLIC[name], 1))
    assert "public_cases.py" in str(caught.value) or "public_layers.py" in str(caught.value)
