"""Tensors made by torch's classes, or of sizes that nodes have, and filled with what children give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import FloatTensor, Tensor, nn

import cortex

D = 4


class Tree:
    """A tree that counts its children."""

    def __init__(self, word: int, children: tuple[Tree, ...] = ()) -> None:
        self.word, self.children = word, list(children)
        self.num_children = len(self.children)
        self.width = 1 + word % 3
        self.state: Any = None


def star(count: int) -> Tree:
    return Tree(count % 5, tuple(Tree(i % 5) for i in range(count)))


def chain(depth: int) -> Tree:
    tree = Tree(0)
    for i in range(depth):
        tree = Tree(i % 5, (tree,))
    return tree


class Filled(nn.Module):
    """States of children are written into the rows of a new tensor; each family makes it in its own way."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.lin, self.out = nn.Embedding(5, D), nn.Linear(D, D), nn.Linear(D, 3)

    def made(self, node: Any) -> Any:
        raise NotImplementedError

    def forward(self, node: Any) -> Any:
        x = self.table(torch.tensor(node.word))
        for child in node.children:
            self(child)
        if node.num_children == 0:
            rows = torch.zeros(1, D)
        else:
            rows = self.made(node)
            for i, child in enumerate(node.children):
                rows[i] = child.state
        node.state = torch.tanh(self.lin(rows).sum(0) + x)
        return node.state


class OfTheClass(Filled):
    def made(self, node: Any) -> Any:
        return torch.Tensor(node.num_children, D)


class OfAName(Filled):
    def made(self, node: Any) -> Any:
        return FloatTensor(node.num_children, D).zero_()


class OfASize(Filled):
    def made(self, node: Any) -> Any:
        return torch.autograd.Variable(Tensor(torch.Size((len(node.children), D))))


class OfAFunction(Filled):
    def made(self, node: Any) -> Any:
        return self.lin.weight.new_zeros((node.num_children, D)) + torch.zeros(node.num_children, D)


class Repeated(Filled):
    """A size that is an attribute of the node, and of no list."""

    def forward(self, node: Any) -> Any:
        for child in node.children:
            self(child)
        x = self.table(torch.tensor(node.word))
        below = sum((child.state for child in node.children), torch.zeros(D))
        wide = torch.cat([x.expand(node.width, D), torch.ones(node.width, D)]).repeat(1, node.width)
        node.state = torch.tanh(self.lin(wide.sum(0)[:D] + below))
        return node.state


class OfNumbers(Filled):
    """Of lists, the same classes give what the lists hold."""

    def forward(self, node: Any) -> Any:
        below = sum((self(child) for child in node.children), torch.zeros(D))
        return torch.tanh(self.lin(below) * torch.Tensor([0.5, 1.0, node.width, 2.0]) + torch.FloatTensor([node.word]))


FAMILY = (OfTheClass, OfAName, OfASize, OfAFunction, Repeated, OfNumbers)


@pytest.mark.parametrize("kind", FAMILY)
def test_a_tensor_that_is_filled_agrees(kind: type[Filled]) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    fast = cortex.compile(module, examples=[star(3), chain(3)])
    trees = [*map(star, (0, 1, 9)), chain(9)]
    with torch.no_grad():
        wanted = [module(tree).clone() for tree in trees]
    for tree, want in zip(trees, wanted, strict=True):
        np.testing.assert_allclose(fast(tree).detach(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fast(trees).detach(), torch.stack(wanted), rtol=1e-4, atol=1e-5)


def test_a_kind_of_any_arity_serves_what_is_filled() -> None:
    fast = cortex.compile(OfTheClass().eval(), examples=[star(3), chain(3)])
    before = repr(fast)
    for count in (11, 30, 7):
        fast(star(count))
    assert repr(fast) == before
