"""Values of nodes that Python takes for equal, 1, 1.0 and True, 0.0 and -0.0, in modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import cortex

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "truth": lambda x: 2 if x else 3,
    "members": lambda x: 2 if x in (1, "a", None) else 3 if x in {0, 5} else 4,
    "text": lambda x: len(str(x)),
    "sign": lambda x: math.copysign(1, x),
}


class Node:
    def __init__(self, x: Any, *children: Node) -> None:
        self.x, self.children = x, list(children)


class Valued(nn.Module):
    def __init__(self, number: Callable[[Any], Any]) -> None:
        super().__init__()
        self.p, self.number = nn.Parameter(torch.ones(3)), number

    def forward(self, node: Node) -> torch.Tensor:
        x: torch.Tensor = self.p * self.number(node.x)
        return x + sum(self(child) for child in node.children)


@pytest.mark.parametrize("name", NUMBERS)
def test_each_value_is_itself(name: str) -> None:
    single = [Node(x) for x in (1, 1.0, True, 0.0, -0.0, 0, False)]
    trees = [*single, Node(1, *single, *(Node(tree.x, Node(1)) for tree in single))]
    with torch.no_grad():
        for _ in range(2):
            module = Valued(NUMBERS[name]).eval()
            fast = cortex.compile(module, examples=[Node(1, Node(1))])
            for tree in trees:
                assert torch.equal(fast(tree), module(tree)), tree.x
