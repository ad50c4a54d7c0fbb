"""Every operator against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cases import CASES
from torch_meaning import agrees


def drawn(inputs: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: given(rng) if callable(given) else torch.randn(given, generator=rng) for name, given in inputs.items()
    }


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_as_torch(name: str, seed: int) -> None:
    function, inputs = CASES[name]
    agrees(function, drawn(inputs, seed))
