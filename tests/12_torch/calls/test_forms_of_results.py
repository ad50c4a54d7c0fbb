"""Methods that return a constant for some nodes: the order of examples makes no difference, nor when one comes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import torch
from torch import nn

import cortex


class Node:
    def __init__(self, word: int, *children: Any) -> None:
        self.word, self.children = word, list(children)


SKIPPED = Node(0)
PLAIN = Node(1, Node(2), Node(3))
MIXED = Node(4, Node(5), Node(0, Node(6)), Node(7, Node(0)))
TREES = (SKIPPED, PLAIN, MIXED)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(12, 4)

    def word(self, node):
        return self.emb(torch.tensor(node.word))


class Skips(Base):
    """None for a node that is left out; callers ask for it."""

    def encode(self, node):
        if node.word == 0:
            return None
        below = [h for h in map(self.encode, node.children) if h is not None]
        return torch.tanh(self.word(node) + (torch.stack(below).sum(0) if below else 0))

    def forward(self, node):
        h = self.encode(node)
        return torch.zeros(4) if h is None else h


class Words(Base):
    """Texts and empty lists in place of tensors."""

    def encode(self, node):
        if node.word == 0:
            return "nothing"
        if node.word == 2:
            return []
        return torch.tanh(self.word(node) + sum(h for h in map(self.encode, node.children) if torch.is_tensor(h)))

    def forward(self, node):
        h = self.encode(node)
        return torch.ones(4) if isinstance(h, str) else h


class Counts(Base):
    """Nothing is computed from the results; which of them are None is counted."""

    def encode(self, node):
        return None if node.word == 0 else self.word(node)

    def forward(self, node):
        return torch.ones(4) * sum(self.encode(child) is None for child in node.children)


class Own(Base):
    """The recursive method is forward itself."""

    def forward(self, node):
        if node.word == 0:
            return False
        h = self.word(node)
        for child in node.children:
            below = self(child)
            if below is not False:
                h = h + torch.relu(below)
        return h


class Passes(Base):
    """A value is passed down, and some calls give None back."""

    def down(self, node, above):
        if node.word == 0:
            return None
        h = torch.tanh(above + self.word(node))
        below = [self.down(child, h) for child in node.children]
        return h + sum(torch.relu(x) for x in below if x is not None)

    def forward(self, node):
        h = self.down(node, torch.zeros(4))
        return torch.zeros(4) if h is None else h


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("module", [Skips, Words, Counts, Own, Passes])
def test_constants_of_some_nodes(module: type[nn.Module], order: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    made = module().eval()
    trees = [TREES[i] for i in order if not (module is Own and TREES[i] is SKIPPED)]
    fast = cortex.compile(made, examples=trees[:1])  # the others come later
    with torch.no_grad():
        for tree in (*trees, *TREES[1:]):
            torch.testing.assert_close(fast(tree), made(tree))


class AfterCalls(Base):
    """Whether it is None depends on what is below."""

    def encode(self, node):
        if not node.children:
            return None if node.word == 0 else self.word(node)
        below = [h for h in map(self.encode, node.children) if h is not None]
        return sum(below) if below else None

    def forward(self, node):
        h = self.encode(node)
        return torch.zeros(4) if h is None else h


class Stores(Base):
    """None is stored on some nodes."""

    def encode(self, node):
        for child in node.children:
            self.encode(child)
        node.h = None if node.word == 0 else self.word(node)

    def forward(self, node):
        self.encode(node)
        return torch.ones(4) * sum(child.h is None for child in node.children)


class Root(Base):
    """The whole gives no tensor for some structures."""

    def encode(self, node):
        return None if node.word == 0 else self.word(node) + sum(map(self.encode, node.children))

    def forward(self, node):
        return self.encode(node)


REFUSED = {
    AfterCalls: ([Node(1, Node(2)), Node(1, Node(0))], "'encode' returns None for some nodes and something else for o"),
    Stores: ([PLAIN, MIXED], "'encode' stores a tensor in node.h for some nodes and None for others"),
    Root: ([Node(1), Node(0)], "'Root' returns a tensor for some nodes and None for others"),
}


@pytest.mark.parametrize("later", [False, True], ids=["examples", "later"])
@pytest.mark.parametrize("turned", [False, True], ids=["tensor_first", "constant_first"])
@pytest.mark.parametrize("module", REFUSED)
def test_what_callers_cannot_know_is_refused(module: type[nn.Module], turned: bool, later: bool) -> None:
    trees, message = REFUSED[module]
    trees = trees[::-1] if turned else trees
    with pytest.raises(cortex.ModelError) as raised:
        fast = cortex.compile(module().eval(), examples=trees[:1] if later else trees)
        for tree in trees:
            fast(tree)
    assert str(raised.value).startswith(message)


class Heights(Base):
    """The greatest and the least number of what is below, with defaults where there is nothing."""

    def encode(self, node):
        below = [self.encode(child) for child in node.children]
        highest, lowest = max((n for _, n, _ in below), default=0), min([n for _, _, n in below], default=0)
        return self.word(node) + sum(h for h, _, _ in below), 1 + highest, 1 + lowest

    def forward(self, node):
        h, highest, lowest = self.encode(node)
        return h / highest + lowest


def test_the_greatest_of_none_is_the_default() -> None:
    module = Heights().eval()
    fast = cortex.compile(module, examples=[PLAIN])
    with torch.no_grad():
        for tree in (*TREES, Node(1, MIXED, PLAIN, Node(1, PLAIN))):
            torch.testing.assert_close(fast(tree), module(tree))


class Valued:
    def __init__(self, op: str, value: Any = None, left: Any = None, right: Any = None) -> None:
        self.op, self.value, self.left, self.right = op, value, left, right


class Values(Base):
    """One attribute is a number in some nodes and an index in others."""

    def forward(self, node):
        if node.op == "number":
            return torch.ones(4) * node.value
        if node.op == "word":
            return self.emb(torch.tensor(node.value))
        return torch.tanh(self(node.left) + self(node.right))


@pytest.mark.parametrize("turned", [False, True])
def test_an_attribute_may_be_an_index_in_some_kinds_only(turned: bool) -> None:
    torch.manual_seed(0)
    module = Values().eval()
    trees = [Valued("number", 1.39), Valued("word", 2)]
    trees.append(Valued("sum", None, Valued("sum", None, *trees), Valued("number", -0.5)))
    fast = cortex.compile(module, examples=trees[::-1] if turned else trees)
    with torch.no_grad():
        for tree in trees:
            torch.testing.assert_close(fast(tree), module(tree))
