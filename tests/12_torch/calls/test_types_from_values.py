"""Element types of tensors that torch makes of Python's numbers, and items of long lists, against the module itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import cortex
from cortex.errors import ModelError


def Node(**fields: Any) -> Any:
    return SimpleNamespace(**{"x": 1, "items": [1, 2], "children": [], **fields})


class ByType(torch.nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.b = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        self.how = how

    def forward(self, node: Any) -> Any:
        h = self.b * 1.0
        for child in node.children:
            h = h + self.forward(child)
        match self.how:
            case "dtype":
                return h * (2 if torch.tensor(node.x).dtype == torch.int64 else 3)
            case "floating":
                return h * 2 if (torch.tensor(node.x) * 1).is_floating_point() else h
            case "name":
                return h * len(torch.tensor(node.x).type())
            case "list":
                return h * (2 if torch.tensor(node.items).dtype == torch.int64 else 3)
            case "sum":
                return h * (sum(node.items) - len(node.items) * node.items[0])
            case "largest":
                return h * (max(node.items) - node.items[0])
        return h * sum(a - b for a, b in zip(node.items, node.items[1:], strict=False))


@pytest.mark.parametrize("how", ["dtype", "floating", "name", "list"])
@pytest.mark.parametrize("first", [1, 2.5])
def test_element_types(how: str, first: float) -> None:
    module = ByType(how).eval()
    fast = cortex.compile(module, examples=[Node(x=first, items=[first, first])], check=False)
    for x in (2, 2.5, 3):
        node = Node(x=x, items=[x, x], children=[Node(x=7)])
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(fast(node)), module(node))


@pytest.mark.parametrize("how", ["sum", "largest", "differences"])
def test_items_of_long_lists(how: str) -> None:
    module = ByType(how).eval()
    node = Node(items=[2.0**24 + i for i in range(80)])
    fast = cortex.compile(module, examples=[node], check=False)
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(fast(node)), module(node))
    with pytest.raises(ModelError, match=r"(299|300) items of node.items"):
        cortex.compile(module, examples=[Node(items=[float(i) for i in range(300)])], check=False)
