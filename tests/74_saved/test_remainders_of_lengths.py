"""A saved module that asks for remainders and the like of a number of children takes every number."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import cortex

NUMBERS = (*range(20), 63, 64, 65, 127, 128, 300, 511, 512, 513, 514, 1024, 1025)
QUESTIONS = ("remainder", "power of two", "both")


def wide(n: int) -> Any:
    return SimpleNamespace(x=1.0, children=[SimpleNamespace(x=float(i % 5), children=[]) for i in range(n)])


class Asking(torch.nn.Module):
    def __init__(self, question: str) -> None:
        super().__init__()
        self.b = torch.nn.Parameter(torch.tensor([1.0, -0.5]))
        self.question = question

    def forward(self, node: Any) -> Any:
        h = self.b * node.x
        for child in node.children:
            h = h + self.forward(child)
        n = len(node.children)
        match self.question:
            case "remainder":
                return h * 2 if n % 3 == 0 else h
            case "power of two":
                return h * 2 if n and n & (n - 1) == 0 else h
        return h * 2 if divmod(n, 4)[1] == 1 and n >> 1 < 40 else h


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_number(question: str, tmp_path: Path) -> None:
    module = Asking(question).eval()
    fast = cortex.compile(module, examples=[wide(4), wide(3)])
    fast.save(tmp_path / "it.cortex")
    loaded = cortex.load(tmp_path / "it.cortex")
    for n in NUMBERS:
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(loaded(wide(n))), module(wide(n)), rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(fast(wide(700))), module(wide(700)), rtol=1e-4, atol=1e-4)
