"""Terms that every child adds, whatever the child: none for no children, also where they are infinite."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cortex


class Node:
    def __init__(self, word: int, *children: Node, others: tuple[Node, ...] = ()) -> None:
        self.word, self.children, self.others = word, list(children), list(others)


def tree() -> Node:
    return Node(1, Node(2), Node(3, Node(1), Node(0), Node(2), others=(Node(4), Node(3))), others=(Node(2),))


STRUCTURES = (tree(), Node(2), Node(1, *(Node(i % 5) for i in range(9))), Node(0, Node(1, Node(2, others=(Node(3),)))))


class Base(nn.Module):
    """`shift` is the same for all children."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.emb, self.below = nn.Embedding(5, 4), nn.Linear(4, 4)
        self.shift = nn.Parameter(torch.zeros(4))

    def own(self, node: Any) -> Any:
        return self.emb(torch.tensor(node.word))


class Shifted(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for child in node.children:
            h = h + self.below(torch.tanh(self(child))) + self.shift
        return h


class OneMore(Base):
    """2n + 1 times."""

    def forward(self, node: Any) -> Any:
        h = self.own(node) + self.shift
        for child in node.children:
            h = h + torch.tanh(self(child)) + self.shift + self.shift
        return h


class ButTheFirst(Base):
    """n - 1 times."""

    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for i, child in enumerate(node.children):
            h = h + torch.tanh(self(child))
            if i:
                h = h + self.shift
        return h


class Multiplied(Base):
    """By 0 for no children: NaN where it is infinite."""

    def forward(self, node: Any) -> Any:
        h = self.own(node) + len(node.children) * self.shift
        for child in node.children:
            h = h + torch.tanh(self(child))
        return h


class TwoLists(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for child in node.children:
            h = h + torch.tanh(self(child)) + self.shift
        for child in node.others:
            h = h + torch.tanh(self(child)) + self.shift
        return h


class OfTheNode(Base):
    def forward(self, node: Any) -> Any:
        x = self.own(node)
        h = x
        for child in node.children:
            h = h + torch.tanh(self(child)) + torch.exp(1000 * x)
        return h


MOST = {Shifted: 1, OneMore: 1, ButTheFirst: 1, Multiplied: 1, TwoLists: 3, OfTheNode: 1}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("make", MOST)
def test_terms(make: type[Base], check: bool) -> None:
    module = make().eval()
    fast = cortex.compile(module, examples=[tree()], check=check)
    assert sum(len(part.model.kinds) for part in fast._parts()) <= MOST[make]
    for shift in ([1.0, 2.0, -3.0, 0.0], [float("inf"), float("-inf"), float("nan"), 1.0]):
        with torch.no_grad():
            module.shift.copy_(torch.tensor(shift))
            fast.update(module)
            for given in STRUCTURES:
                torch.testing.assert_close(fast(given), module(given), rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("reduce", [cortex.sum, sum])
def test_terms_of_functions(reduce: Any) -> None:
    @cortex.model
    def total(node: Any, w: Any) -> Any:
        return w.x[node.word] + reduce(cortex.tanh(total(k, w)) + w.b for k in node.kids)

    def node(word: int, *kids: Any) -> Any:
        return SimpleNamespace(word=word, kids=list(kids))

    def plain(given: Any) -> Any:
        return sum((np.tanh(plain(k)) + weights["b"] for k in given.kids), weights["x"][given.word])

    weights = {"x": np.array([[1, 2], [3, 4]], np.float32), "b": np.array([np.inf, -1], np.float32)}
    given = [node(0), node(1, node(0)), node(1, node(0, node(1)), *map(node, (0, 1, 0)))]
    out = cortex.compile(total, weights, examples=given[1:2])(given).out
    np.testing.assert_allclose(out, [plain(each) for each in given], rtol=1e-6)
