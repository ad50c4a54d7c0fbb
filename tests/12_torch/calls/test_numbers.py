"""Numbers that nodes hold, as Python's: float(), int(), integers of any size, lists of several lengths, arrays."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import from_numpy, nn

import cortex

WORDS, DIM = 10, 4
Floats = torch.FloatTensor


class Node:
    """As much as a node may hold."""

    def __init__(self, children: list[Node]) -> None:
        self.children = children
        self.word, self.x, self.count = random.randrange(WORDS), random.random() + 0.1, random.randrange(1, 500)
        self.rows = random.randrange(1, 2**34)
        self.words = [random.randrange(WORDS) for _ in range(random.randrange(1, 3))]
        self.numbers = [random.random() for _ in self.words]
        self.some = self.words if children else []
        self.three = (1, self.word, 3)
        self.edges = [random.random() for _ in children]
        self.box = np.random.default_rng(self.word).random(DIM, np.float32)
        self.ids = np.array(self.words)


def tree(leaves: int) -> Node:
    return Node([Node([Node([]) for _ in range(leaves)]), Node([])])


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.table = nn.Embedding(WORDS, DIM), nn.Parameter(torch.randn(WORDS, DIM))

    def forward(self, node):
        h = self.emb(torch.tensor(node.word)) * self.own(node)
        for child in node.children:
            h = h + self(child)
        return torch.tanh(h)


class Converted(Base):
    """In tensors and with tensors, by way of names and comprehensions."""

    def own(self, node):
        numbers = [float(node.x), float(node.count)]
        numbers += [float(n) for n in (node.count, node.x)]
        scaled = torch.tensor([float(node.count) / 100, 2 * float(node.x)]).sum()
        made = torch.FloatTensor([float(node.x)]).sum() + float(float(node.x)) + torch.tensor(float(int(node.count)))
        return torch.tensor(numbers).sum() + scaled + made + float(node.x) * self.table[0] - float(node.count)


class Positions(Base):
    """`int` of what is an integer."""

    def own(self, node):
        rows = self.table[int(node.word)] + self.table[int(node.word), 1] + self.emb(torch.tensor([int(node.word)]))[0]
        return rows + self.emb(torch.LongTensor([int(node.word)]))[0]


class Decided(Base):
    """Comparisons tell apart what they tell apart."""

    def own(self, node):
        return self.table[1] if float(node.x) > 0.5 and int(node.count) < 250 else self.table[0]


class Big(Base):
    """Integers beyond 32 bits that become floats."""

    def own(self, node):
        rows = torch.tensor([node.rows, node.count], dtype=torch.float)
        return torch.log1p(rows).sum() + torch.log(torch.tensor(node.rows)) + node.rows * self.table[0] * 1e-9


class Listed(Base):
    """Integers of a list as indices; each length is a kind."""

    def own(self, node):
        rows = self.emb(torch.tensor(node.words)).mean(0) + self.table[:, torch.tensor([1])].sum() + len(node.words)
        rows = rows + self.table[node.words].sum(0) + self.emb(torch.LongTensor(node.words)).sum(0)
        return rows + self.emb(torch.from_numpy(node.ids)).sum(0) + sum(self.emb(torch.tensor(w)) for w in node.words)


class Mixed(Base):
    """Lists of floats of several lengths, lists that may be empty, integers that index and are computed with."""

    def own(self, node):
        some = self.emb(torch.tensor(node.some)).sum(0) if node.some else self.table[0]
        three = torch.tensor(node.three)
        return some + torch.tensor(node.numbers).sum() + self.emb(three).sum(0) + three.float().mean() + three[1] * 2.0


class Edges(Base):
    """A weight for each child, in a list beside them."""

    def forward(self, node):
        h = self.emb(torch.tensor(node.word))
        for weight, child in zip(node.edges, node.children, strict=True):
            h = h + weight * self(child)
        return torch.tanh(h)


class Arrays(Base):
    """Constructors that torch lets nobody override."""

    def own(self, node):
        found = torch.from_numpy(node.box) @ self.table[:DIM] + from_numpy(node.box) + Floats(node.box)
        return found + torch.Tensor(node.box) + torch.FloatTensor(node.box)


class Constants(Base):
    """Functions without a counterpart, of constants."""

    def own(self, node):
        mask = torch.triu(torch.ones(DIM, DIM)) + torch.tril(torch.eye(DIM) * 2)
        order = torch.sort(torch.tensor([3.0, 1.0, 2.0, 0.0])).values + torch.sin(torch.arange(4.0))
        return mask @ self.table[node.word] + torch.cumsum(torch.ones(DIM), 0) + order * torch.ones(3).sum().item()


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        *((Converted, 2), (Positions, 2), (Decided, 6), (Big, 2), (Listed, 5), (Mixed, 6), (Edges, 5), (Arrays, 2)),
        (Constants, 2),
    ],
)
def test_kinds(kind: Callable[[], nn.Module], kinds: int) -> None:
    random.seed(1)
    torch.manual_seed(1)
    module, examples = kind().eval(), [tree(0), tree(1), tree(2)]
    fast = cortex.compile(module, examples=examples)
    with torch.no_grad():
        for given in [*examples, tree(2), tree(3)]:
            torch.testing.assert_close(fast(given), module(given), rtol=1e-4, atol=1e-5)
    assert len(fast.executable(examples[0]).compiled.model.kinds) <= kinds


class Result(NamedTuple):
    """A number beside a tensor."""

    h: Any
    n: float


class Asked(Base):
    """Whatever else is done with a number asks for it: sizes, powers, arithmetic, texts, arguments, results."""

    def scaled(self, node, by):
        below = sum(self.scaled(child, float(child.word)).h for child in node.children)
        h = self.table[: int(node.word) + 1].sum(0) + torch.zeros(int(node.word) + 1, DIM).sum(0) + below
        h = h + self.table[(int(node.word) + 1) % WORDS].clamp(max=float(node.word)) ** float(node.word)
        h = h + round(float(node.word), 1) + len(str(int(node.word))) + np.log1p(float(node.word)) + by
        h = h + torch.full((2,), float(node.word)).sum() + sum(range(int(node.word))) + {int(node.word): 1}[node.word]
        return Result(torch.tanh(h), float(node.word))

    def forward(self, node):
        return self.scaled(node, 1.0).h


def test_numbers_that_python_needs_are_asked_for() -> None:
    random.seed(1)
    module, examples = Asked().eval(), [tree(0), tree(1)]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast = cortex.compile(module, examples=examples)
        for given in [*examples, tree(2)]:
            torch.testing.assert_close(fast(given), module(given), rtol=1e-4, atol=1e-5)


class Kept(Base):
    """Keeps the number of one node for others."""

    kept: Any = None

    def own(self, node):
        if Kept.kept is None:
            Kept.kept = float(node.x)
        return torch.tensor(Kept.kept)


def test_a_number_of_another_node_is_refused() -> None:
    with pytest.raises(cortex.ModelError, match="calls on other nodes"):
        cortex.compile(Kept().eval(), examples=[tree(1)])


class Hot(Base):
    """An integer that is compared with positions."""

    def own(self, node):
        return nn.functional.one_hot(torch.tensor(node.count), 500).float().sum()


def test_integers_that_are_used_as_such_fit_their_positions() -> None:
    random.seed(1)
    module, given = Hot().eval(), tree(1)
    fast = cortex.compile(module, examples=[given])
    given.count = 2**33
    with pytest.raises(cortex.StructureError, match="is 8589934592; it must be an integer from 0 to 499"):
        fast(given)
