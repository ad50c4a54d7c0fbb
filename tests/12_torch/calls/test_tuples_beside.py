"""Tuples beside an argument that is a structure: trees and tensors are data, numbers are constants of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import cortex

SIZE = 4


class Graph:
    """Vertices are numbers; `inputs[v]` are those before v."""

    def __init__(self, operators: list[int], inputs: list[list[int]]) -> None:
        self.operators, self.inputs, self.last = operators, inputs, len(inputs) - 1


class Names:
    """Tables of a query by name."""

    def __init__(self, **numbers: int) -> None:
        self.numbers = numbers


class Base(nn.Module):
    """What all need."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, SIZE)
        self.cell = nn.Linear(SIZE, SIZE)

    def joined(self, operator: Any, below: list[Any]) -> Any:
        return torch.tanh(self.cell(sum(below, torch.zeros(SIZE))) + self.words(torch.tensor(operator)))


class Beside(Base):
    """A tuple is a structure beside another argument that is one."""

    def encode(self, tree: Any) -> Any:
        if isinstance(tree, int):
            return self.words(torch.tensor(tree))
        return torch.tanh(self.cell(self.encode(tree[0]) - self.encode(tree[1])))

    def forward(self, names: Names, tree: Any) -> Any:
        return self.encode(tree) * names.numbers["a"]


class WithStates(Base):
    """Tensors in a tuple are data of the call, a tuple of numbers is a constant of the program."""

    def forward(self, graph: Graph, states: Any, scale: tuple[float, float] = (1.0, 2.0)) -> Any:
        h, c = states
        return self.joined(len(graph.inputs), [h]) * c * scale[0] + scale[1]


CHAIN = Graph([1, 2, 3, 4], [[], [0], [1], [2]])
A, B = Names(a=1, b=2, c=3), Names(a=4, b=0, c=2, d=7)
TREES = [(A, (1, (2, 3))), (B, (1, (2, 3))), (B, (1, (2, (3, 4)))), (A, ((5, 4), 1)), (A, (1, 2))]


def states(seed: int, *more: Any) -> tuple[Any, ...]:
    made = torch.Generator().manual_seed(seed)
    return CHAIN, (torch.randn(SIZE, generator=made), torch.randn(SIZE, generator=made)), *more


STATES = [states(0), states(1), states(2, (3.0, 1.0)), states(3, (3.0, 5.0))]


@pytest.mark.parametrize(
    ("module", "calls"),
    [(Beside, TREES), (WithStates, STATES)],
    ids=["trees", "tensors"],
)
def test_same_as_the_module(module: Callable[[], nn.Module], calls: list[tuple[Any, ...]]) -> None:
    torch.manual_seed(0)
    made = module().eval()
    with torch.no_grad():
        fast = cortex.compile(made, examples=calls[:1])
        want = [made(*call) for call in calls]
        for call, expected in zip(calls, want, strict=True):
            torch.testing.assert_close(fast(*call), expected)
