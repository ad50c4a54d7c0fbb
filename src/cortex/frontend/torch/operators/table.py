"""Which torch functions can be compiled: rules for ATen operators, and what torch answers without computing."""

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
    grids,
    indexing,
    losses,
    metadata,
    movement,
    normalization,
    pointwise,
    products,
    recurrent,
    reductions,
    scatters,
)

OWNERS = {"torch": torch, "Tensor": torch.Tensor, "F": F}
FAMILIES = (
    pointwise, activations, products, movement, indexing, scatters, reductions, normalization, recurrent, losses, grids,
)  # fmt: skip
"""Rules for ATen operators, which torch runs on tensors without elements first."""
UNCHECKED = (factories.RULES, metadata.RULES)
"""Rules for ATen operators whose results torch need not be asked for."""
WHOLE = (
    indexing.FUNCTIONS, metadata.FUNCTIONS, factories.FUNCTIONS, pointwise.FUNCTIONS, activations.FUNCTIONS,
    normalization.FUNCTIONS,
)  # fmt: skip
"""Functions that are not broken down: indexing by Python objects, facts, and a few that have a better form here."""


@dataclass(frozen=True)
class Rule:
    """What an ATen operator computes, given its arguments in the order of its schema."""

    run: Callable[..., Any]
    is_checked: bool = True


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """By name of an ATen operator, for all its overloads ("add"), or of one overload ("max.dim")."""
    found = {name: Rule(run) for family in FAMILIES for name, run in family.RULES.items()}
    return found | {name: Rule(run, False) for family in UNCHECKED for name, run in family.items()}


@lru_cache(maxsize=1)
def functions() -> dict[Any, Callable[..., Any]]:
    """By function of torch."""
    found: dict[Any, Callable[..., Any]] = {}
    for family in WHOLE:
        for name, run in family.items():
            owner, _, last = name.rpartition(".")
            function = getattr(OWNERS[owner], last, None)
            if function is not None:
                found[function if callable(function) else function.__get__] = run
    return found
