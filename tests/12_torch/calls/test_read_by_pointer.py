"""Tensors on nodes are read from their memory: whatever their layout is, the numbers are torch's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fuzz.interpreted import interpreting
from torch import nn

import cortex


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(4, 3), nn.Parameter(torch.ones(3))

    def forward(self, node: Any) -> Any:
        h = self.layer(node.x) + node.y * self.scale
        for child in node.children:
            h = h + self(child)
        return torch.tanh(h)


def of(x: torch.Tensor, y: torch.Tensor) -> Any:
    return SimpleNamespace(x=x, y=y, children=[SimpleNamespace(x=x, y=y, children=[])])


LAYOUTS: dict[str, torch.Tensor] = {
    "plain": torch.randn(4),
    "gaps": torch.randn(8)[::2],
    "expanded": torch.randn(1).expand(4),
    "column": torch.randn(4, 2).t()[0],
    "offset": torch.randn(9)[3:7],
    "parameter": nn.Parameter(torch.randn(4)),
    "with_gradients": torch.randn(4, requires_grad=True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    module = Sum().eval()
    with interpreting(), torch.no_grad():
        fast = cortex.compile(module, examples=[of(torch.randn(4), torch.tensor(0.5))], check=False)
        node = of(LAYOUTS[name], torch.randn(3)[1])
        torch.testing.assert_close(fast(node), module(node), rtol=1e-5, atol=1e-6)


def test_a_number_whose_sign_is_changed_when_it_is_read() -> None:
    """`z.conj().imag` has the elements of z in memory; it is refused, as NumPy refuses it, or read right."""
    module = Sum().eval()
    with interpreting(), torch.no_grad():
        fast = cortex.compile(module, examples=[of(torch.randn(4), torch.tensor(0.5))], check=False)
        y = torch.tensor(1 + 2j).conj().imag
        assert y.is_neg() and y.is_contiguous()
        with pytest.raises(RuntimeError, match="negative bit"):
            fast(of(torch.randn(4), y))
