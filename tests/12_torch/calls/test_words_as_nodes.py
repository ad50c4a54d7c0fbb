"""Structures whose leaves are words or numbers, below nodes that are objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex


class Phrase(list[Any]):
    """As `nltk.Tree`: a list of phrases and words."""


class Binary(nn.Module):
    """Leaves are numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.both = nn.Linear(8, 4)

    def forward(self, node: Any) -> Any:
        if isinstance(node, int):
            return self.words(torch.tensor(node))
        return torch.tanh(self.both(torch.cat([self(node.left), self(node.right)])))


class Phrases(nn.Module):
    """Leaves are words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.ParameterDict({word: nn.Parameter(torch.randn(4)) for word in "ab"})
        self.below = nn.Linear(4, 4)

    def forward(self, node: Any) -> Any:
        if isinstance(node, str):
            return self.words[node]
        return torch.tanh(self.below(torch.stack([self(child) for child in node]).mean(0)))


class Sums(nn.Module):
    """Leaves are numbers, in lists that may have nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 4)

    def forward(self, node: Any) -> Any:
        if isinstance(node, int):
            return self.words(torch.tensor(node))
        total = torch.zeros(4)
        for child in node.children:
            total = total + self(child)
        return torch.tanh(total)


class Constants(nn.Module):
    """A list of numbers is data, though it is called as lists of nodes are."""

    def forward(self, node: Any) -> Any:
        if node.op == "constant":
            return torch.tensor(node.children)
        return torch.tanh(torch.stack([self(child) for child in node.children]).sum(0))


def several(*children: Any) -> SimpleNamespace:
    return SimpleNamespace(op="sum", children=list(children))


def constant(*numbers: float) -> SimpleNamespace:
    return SimpleNamespace(op="constant", children=list(numbers))


def pair(left: Any, right: Any) -> SimpleNamespace:
    return SimpleNamespace(left=left, right=right)


@pytest.mark.parametrize(
    ("module", "trees"),
    [
        (Binary(), [pair(1, 2), pair(pair(1, 3), 2), pair(pair(4, pair(0, 1)), pair(2, 2))]),
        (Sums(), [several(several(2), 3), several(several(1), 2), several(several(4, 0), several(1))]),
        (Constants(), [constant(0.5, 2.0), several(constant(0.5, 1.0), constant(2.0, 0.25)), constant(3.0, 1.0)]),
        (Phrases(), [Phrase("a"), Phrase([Phrase("ab"), "b"]), Phrase(["a", Phrase([Phrase("a")])])]),
    ],
)
def test_leaves_that_are_no_objects(module: nn.Module, trees: list[Any]) -> None:
    fast = cortex.compile(module.eval(), examples=[trees[1]])
    with torch.no_grad():
        for tree in trees:
            torch.testing.assert_close(fast(tree), module(tree))
