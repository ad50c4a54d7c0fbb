"""How a case is written: a function of tensors, and the shapes of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Case = tuple[Callable[..., Any], dict[str, Any]]
Shape = tuple[int, ...]

X: Shape = (3, 4)
V: Shape = (4,)


def case(function: Callable[..., Any], **inputs: Any) -> Case:
    """Inputs are shapes of random tensors, or functions that draw one."""
    return function, inputs


def positive(*shape: int) -> Callable[[torch.Generator], torch.Tensor]:
    return lambda rng: torch.rand(shape, generator=rng) + 0.1


def whole(*shape: int, below: int = 3) -> Callable[[torch.Generator], torch.Tensor]:
    return lambda rng: torch.randint(0, below, shape, generator=rng)


def unary(names: str, of: Any = X) -> dict[str, Case]:
    """As functions of torch, as methods, and in place."""
    found = {}
    for name in names.split():
        found[f"torch.{name}"] = case(lambda x, name=name: getattr(torch, name)(x), x=of)
        found[f"Tensor.{name}"] = case(lambda x, name=name: getattr(x, name)(), x=of)
        if hasattr(torch.Tensor, f"{name}_"):
            found[f"Tensor.{name}_"] = case(lambda x, name=name: (getattr(x, f"{name}_")(), x), x=of)
    return found


def binary(names: str) -> dict[str, Case]:
    return {
        f"torch.{name}": case(lambda x, y, name=name: getattr(torch, name)(x, y), x=X, y=(3, 1))
        for name in names.split()
    }
