"""Structures walked by functions of numbers and names: the number is the node, the structure is handed on with it."""

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

    def before(self, v: int) -> list[int]:
        return self.inputs[v]


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


class ByNumber(Base):
    """The graph is handed on."""

    def encode(self, graph: Graph, v: int) -> Any:
        return self.joined(graph.operators[v], [self.encode(graph, u) for u in graph.inputs[v]])

    def forward(self, graph: Graph) -> Any:
        return self.encode(graph, graph.last)


class Remembered(Base):
    """Results are remembered by number; a method of the graph says what is before a vertex."""

    def encode(self, graph: Graph, v: int, known: dict[int, Any]) -> Any:
        if v not in known:
            below = [self.encode(graph, u, known) for u in graph.before(v)]
            known[v] = self.joined(graph.operators[v], below)
        return known[v]

    def forward(self, graph: Graph) -> Any:
        return self.encode(graph, graph.last, {})


class ByName(Base):
    """Leaves of a tree of joins are names, by which another structure knows them."""

    def encode(self, names: Names, tree: Any) -> Any:
        if isinstance(tree, str):
            return self.words(torch.tensor(names.numbers[tree]))
        left, right = tree
        return torch.tanh(self.cell(self.encode(names, left) - self.encode(names, right)))

    def forward(self, names: Names, tree: Any) -> Any:
        return self.encode(names, tree)


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
SINGLE, STAR = Graph([5], [[]]), Graph([1, 2, 3, 4, 5, 6], [[], [], [], [], [], [4, 2, 0, 1, 3]])
SHARED = Graph([1, 2, 3, 4, 5], [[], [0], [0, 1], [1, 1], [3, 2, 0]])
A, B = Names(a=1, b=2, c=3), Names(a=4, b=0, c=2, d=7)
GRAPHS = [(SHARED,), (SINGLE,), (STAR,), (CHAIN,)]
JOINS = [(A, ("a", ("b", "c"))), (B, (("d", "a"), ("b", "c"))), (B, ("a", "b")), (A, ("a", ("b", "c")))]
TREES = [(A, (1, (2, 3))), (B, (1, (2, 3))), (B, (1, (2, (3, 4)))), (A, ((5, 4), 1)), (A, (1, 2))]


def states(seed: int, *more: Any) -> tuple[Any, ...]:
    made = torch.Generator().manual_seed(seed)
    return CHAIN, (torch.randn(SIZE, generator=made), torch.randn(SIZE, generator=made)), *more


STATES = [states(0), states(1), states(2, (3.0, 1.0)), states(3, (3.0, 5.0))]


@pytest.mark.parametrize(
    ("module", "calls"),
    [(ByNumber, GRAPHS), (Remembered, GRAPHS), (ByName, JOINS), (Beside, TREES), (WithStates, STATES)],
    ids=["number", "remembered", "name", "beside", "states"],
)
def test_same_as_the_module(module: Callable[[], nn.Module], calls: list[tuple[Any, ...]]) -> None:
    torch.manual_seed(0)
    made = module().eval()
    with torch.no_grad():
        fast = cortex.compile(made, examples=calls[:1])
        want = [made(*call) for call in calls]
        for call, expected in zip(calls, want, strict=True):
            torch.testing.assert_close(fast(*call), expected)
