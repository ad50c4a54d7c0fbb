"""A saved module that asks for remainders and the like of a number of children takes every number."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import cortex

NUMBERS = (*range(20), 63, 64, 65, 127, 128, 300, 511, 512, 513, 514, 1024, 1025)


def wide(n: int) -> Any:
    return SimpleNamespace(x=1.0, children=[SimpleNamespace(x=float(i % 5), children=[]) for i in range(n)])


class Remainder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.b = torch.nn.Parameter(torch.tensor([1.0, -0.5]))

    def forward(self, node: Any) -> Any:
        h = self.b * node.x
        for child in node.children:
            h = h + self.forward(child)
        return h * 2 if self.asks(len(node.children)) else h

    def asks(self, n: int) -> bool:
        return n % 3 == 0


class PowerOfTwo(Remainder):
    def asks(self, n: int) -> bool:
        return bool(n) and n & (n - 1) == 0


class Both(Remainder):
    def asks(self, n: int) -> bool:
        return divmod(n, 4)[1] == 1 and n >> 1 < 40


@pytest.mark.parametrize("kind", [Remainder, PowerOfTwo, Both])
def test_every_number(kind: type[torch.nn.Module], tmp_path: Path) -> None:
    module = kind().eval()
    fast = cortex.compile(module, examples=[wide(4), wide(3)])
    fast.save(tmp_path / "it.cortex")
    loaded = cortex.load(tmp_path / "it.cortex")
    for n in NUMBERS:
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(loaded(wide(n))), module(wide(n)), rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(fast(wide(700))), module(wide(700)), rtol=1e-4, atol=1e-4)
