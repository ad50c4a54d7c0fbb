"""Which torch functions can be compiled: the families of operators, found under all the names torch gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone calls it

from cortex.frontend.torch.operators import (
    activations,
    factories,
    indexing,
    losses,
    metadata,
    movement,
    normalization,
    pointwise,
    products,
    recurrent,
    reductions,
)
from cortex.frontend.torch.operators.inplace import in_place

OWNERS = {"torch": torch, "Tensor": torch.Tensor, "F": F, "_nn": torch._C._nn, "linalg": torch.linalg}
ANYWHERE = ("torch", "Tensor", "F", "_nn")
"""Where a name without an owner is looked for."""
FAMILIES = (pointwise, activations, products, movement, indexing, reductions, normalization, recurrent, losses)
"""Operators on tensors: torch runs them on meta tensors first."""
UNCHECKED = (factories.FUNCTIONS, metadata.FUNCTIONS, normalization.UNCHECKED)
"""What gives no tensor, or takes none, or must be refused before torch finds something else wrong."""


@dataclass(frozen=True)
class Entry:
    """An implementation; if `checked`, torch is asked first whether the arguments are right and what comes of them."""

    run: Callable[..., Any]
    checked: bool = True


@lru_cache(maxsize=1)
def table() -> dict[Any, Entry]:
    """By function of torch.

    A family maps a name to an implementation: "tanh" stands for torch.tanh, Tensor.tanh and F.tanh, as far as they
    exist, and for what changes its first argument in place, Tensor.tanh_; "F.tanh" for F.tanh alone.
    """
    found: dict[Any, Entry] = {}
    families = [(family.FUNCTIONS, True) for family in FAMILIES] + [(family, False) for family in UNCHECKED]
    for family, checked in families:
        for name, run in family.items():
            for function in functions(name):
                if "." in name or function not in found:
                    found[function] = Entry(run, checked)
            for function in functions(changing(name)):
                found.setdefault(function, Entry(in_place(run), checked))
    return found


def changing(name: str) -> str:
    """The variant that changes its first argument: add_ and __iadd__."""
    return f"__i{name[2:]}" if name.startswith("__") else f"{name}_"


def functions(name: str) -> list[Any]:
    """The functions and methods of torch that a name of a family stands for."""
    owner, dot, last = name.rpartition(".")
    owners = [OWNERS[owner]] if dot else [OWNERS[name] for name in ANYWHERE]
    exist = [getattr(each, last) for each in owners if hasattr(each, last)]
    return [each if callable(each) else each.__get__ for each in exist]
