"""Unchanged torch code that loops over children: one kind of any arity after one example."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import cortex

H = 6


class Tree:
    """As in public tree LSTMs: the number of children is kept beside them."""

    def __init__(self, word: int, children: list[Tree]) -> None:
        self.word = word
        self.children = children
        self.num_children = len(children)


def tree(rng: Random, depth: int, most: int) -> Tree:
    below = [tree(rng, depth - rng.randint(1, 2), most) for _ in range(rng.randint(1, most))] if depth > 0 else []
    return Tree(rng.randrange(20), below)


class ChildSum(nn.Module):
    """The child-sum tree LSTM as it is mostly written: children one by one, stacked, products of the whole stack."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 5)
        self.ioux, self.iouh = nn.Linear(5, 3 * H), nn.Linear(H, 3 * H)
        self.fx, self.fh = nn.Linear(5, H), nn.Linear(H, H)

    def node_forward(self, x: Any, child_c: Any, child_h: Any) -> Any:
        iou = self.ioux(x) + self.iouh(torch.sum(child_h, dim=0, keepdim=True))
        i, o, u = torch.split(iou, iou.size(1) // 3, dim=1)
        f = torch.sigmoid(self.fh(child_h) + self.fx(x).repeat(len(child_h), 1))
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sum(f * child_c, dim=0, keepdim=True)
        return c, torch.sigmoid(o) * torch.tanh(c)

    def forward(self, node: Any) -> Any:
        x = self.embedding(torch.tensor([node.word]))
        states = [self(node.children[i]) for i in range(node.num_children)]
        if node.num_children == 0:
            return self.node_forward(x, x.new_zeros(1, H), x.new_zeros(1, H))
        child_c, child_h = zip(*states, strict=True)
        return self.node_forward(x, torch.cat(child_c, dim=0), torch.cat(child_h, dim=0))


class Attention(nn.Module):
    """Softmax attention, maximum and mean over the stacked states of children."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.out, self.score = nn.Embedding(20, H), nn.Linear(H, H), nn.Linear(H, 1)

    def forward(self, node: Any) -> Any:
        x = self.embedding(torch.tensor(node.word))
        if len(node.children) == 0:
            return torch.tanh(x)
        h = torch.stack([self(child) for child in node.children])
        shares = functional.softmax(self.score(h), dim=0)
        return torch.tanh(self.out((shares * h).sum(0)) + x + h.max(dim=0)[0] + h.mean(0))


@pytest.mark.parametrize("kind", [ChildSum, Attention])
def test_no_compilation_for_any_arity(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    rng = Random(0)
    example = tree(rng, 1, 3)
    fast = cortex.compile(module, examples=[example])
    executable = fast.executable(example)
    before = executable.compilations
    for most in (2, 5, 12):
        root = tree(rng, 3, most)
        with torch.no_grad():
            torch.testing.assert_close(fast(root), module(root), rtol=1e-4, atol=1e-5)
    assert executable.compilations == before


class Limited(nn.Module):
    """Treats numbers of children that only its attributes tell in ways of their own."""

    def __init__(self, most: int, special: int) -> None:
        super().__init__()
        self.embedding, self.linear = nn.Embedding(20, H), nn.Linear(H, H)
        self.most, self.special = most, special

    def forward(self, node: Any) -> Any:
        x = self.embedding(torch.tensor([node.word]))
        if len(node.children) == 0:
            return x
        states = [self(child) for child in node.children[: self.most]]
        h = torch.stack(states).mean(0)
        return torch.tanh(self.linear(h)) if len(node.children) == self.special else torch.tanh(h + x)


def test_numbers_of_children_that_attributes_tell() -> None:
    torch.manual_seed(0)
    module = Limited(10, 9).eval()
    fast = cortex.compile(module, examples=[tree(Random(0), 2, 3)])
    for arity in (9, 10, 11, 9):
        root = Tree(3, [Tree(i % 20, []) for i in range(arity)])
        with torch.no_grad():
            torch.testing.assert_close(fast(root), module(root), rtol=1e-4, atol=1e-5)


class Sibling(nn.Module):
    """What is asked of the parent's list of children, whose length is not that of a list of the node."""

    def __init__(self, siblings: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, H)
        self.siblings = siblings

    def forward(self, node: Any) -> Any:
        above = 0 if node.parent is None else self.siblings(self, node.parent.children)
        return torch.tanh(self.embedding(torch.tensor(node.word)) + above + sum(self(k) for k in node.children))


SIBLINGS = {
    "count": lambda _, kids: len(kids),
    "are_there": lambda _, kids: 1.0 if len(kids) > 1 else 0.0,
    "sum": lambda self, kids: sum(self.embedding(torch.tensor(k.word)) for k in kids),
}


@pytest.mark.parametrize("name", SIBLINGS)
def test_lists_of_the_parent_are_asked_for_each_length(name: str) -> None:
    def linked(node: Any, parent: Any = None) -> Any:
        node.parent = parent
        for child in node.children:
            linked(child, node)
        return node

    torch.manual_seed(0)
    module = Sibling(SIBLINGS[name]).eval()
    fast = cortex.compile(module, examples=[linked(tree(Random(1), 3, 3))])
    with torch.no_grad():
        for seed in range(2, 6):
            root = linked(tree(Random(seed), 3, 4))
            torch.testing.assert_close(fast(root), module(root))
