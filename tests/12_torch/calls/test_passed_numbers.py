"""Numbers and texts that recursive calls and `forward` are given: data of the call, whatever their values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from nodes import Node
from torch import nn

import cortex


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(12, 4)
        self.pos = nn.Embedding(40, 4)
        self.lin = nn.Linear(4, 4)

    def word(self, node: Any) -> Any:
        return self.emb(torch.tensor(node.word))


def total(parts: Any) -> Any:
    return sum(parts, torch.zeros(4))


class DepthAsIndex(Base):
    def forward(self, node: Any, depth: int = 0) -> Any:
        x = self.word(node) + self.pos(torch.tensor(depth))
        return torch.tanh(self.lin(x + total(self(c, depth + 1) for c in node.children)))


class DepthAsFactor(Base):
    def encode(self, node: Any, depth: int) -> Any:
        return torch.tanh(self.word(node) * 0.9**depth + total(self.encode(c, depth + 1) for c in node.children))

    def forward(self, node: Any) -> Any:
        return self.encode(node, 0)


class DepthCompared(Base):
    def encode(self, node: Any, depth: int) -> Any:
        x = self.lin(self.word(node)) if depth > 2 else self.word(node)
        return torch.tanh(x + total(self.encode(c, depth + 1) for c in node.children))

    def forward(self, node: Any) -> Any:
        return self.encode(node, 0)


class DepthAndPosition(Base):
    def encode(self, node: Any, depth: int, position: int) -> Any:
        x = self.word(node) + self.pos(torch.tensor(depth)) * position
        for i, child in enumerate(node.children):
            x = x + self.encode(child, depth + 1, i)
        return torch.tanh(x)

    def forward(self, node: Any) -> Any:
        return self.encode(node, 0, 0)


class PositionAndCount(Base):
    def encode(self, node: Any, position: int, count: int) -> Any:
        below = (self.encode(c, i + 1, len(node.children)) for i, c in enumerate(node.children))
        return torch.tanh(self.word(node) * (position / count) + total(below))

    def forward(self, node: Any) -> Any:
        return self.encode(node, 1, 1)


class Budget(Base):
    def encode(self, node: Any, budget: int) -> Any:
        if budget == 0:
            return self.word(node)
        return torch.tanh(self.word(node) + total(self.encode(c, budget - 1) for c in node.children))

    def forward(self, node: Any, budget: int = 3) -> Any:
        return self.encode(node, budget)


class BudgetOrNone(Base):
    def encode(self, node: Any, budget: int) -> Any:
        if budget == 0:
            return None
        below = [self.encode(c, budget - 1) for c in node.children]
        return torch.tanh(self.word(node) + total(x for x in below if x is not None))

    def forward(self, node: Any, budget: int) -> Any:
        return self.encode(node, budget)


class SharedBudget(Base):
    """A field that is computed with a number of children."""

    def encode(self, node: Any, budget: int) -> Any:
        if budget <= 0 or not node.children:
            return self.word(node)
        share = budget // len(node.children)
        x = self.lin(self.word(node)) if budget < len(node.children) else self.word(node)
        return torch.tanh(x + total(self.encode(c, share) for c in node.children))

    def forward(self, node: Any, budget: int) -> Any:
        return self.encode(node, budget)


class Sum(Base):
    def encode(self, node: Any, above: int) -> Any:
        above = above + node.word
        return torch.tanh(self.word(node) * above * 0.1 + total(self.encode(c, above) for c in node.children))

    def forward(self, node: Any) -> Any:
        return self.encode(node, 0)


class Role(Base):
    def encode(self, node: Any, role: str) -> Any:
        x = self.lin(self.word(node)) if role == "first" else self.word(node)
        below = (self.encode(c, "other" if i else "first") for i, c in enumerate(node.children))
        return torch.tanh(x + total(below))

    def forward(self, node: Any) -> Any:
        return self.encode(node, "")


class Scaled(Base):
    def forward(self, node: Any, scale: float) -> Any:
        return torch.tanh(self.word(node) * scale + total(self(c, scale * 0.5) for c in node.children))


class Task(Base):
    def encode(self, node: Any) -> Any:
        return torch.tanh(self.word(node) + total(map(self.encode, node.children)))

    def forward(self, node: Any, task: int) -> Any:
        return self.encode(node) * self.pos.weight[task]


class Threshold(Base):
    def forward(self, node: Any, threshold: int) -> Any:
        x = self.lin(self.word(node)) if node.word > threshold else self.word(node)
        return torch.tanh(x + total(self(c, threshold) for c in node.children))


class Times(Base):
    """How often a loop runs has to be known: a kind for each number."""

    def encode(self, node: Any) -> Any:
        return torch.tanh(self.word(node) + total(map(self.encode, node.children)))

    def forward(self, node: Any, times: int) -> Any:
        h = self.encode(node)
        for _ in range(times):
            h = torch.tanh(self.lin(h))
        return h


class TwoNumbers(Base):
    def forward(self, node: Any, a: float, b: float) -> Any:
        return torch.tanh(self.word(node) * a + b + total(self(c, a + 1, b - a) for c in node.children))


GIVEN: dict[Any, list[tuple[Any, ...]]] = {
    DepthAsIndex: [(2,), (0,), (9,)],
    DepthAsFactor: [()],
    DepthCompared: [()],
    DepthAndPosition: [()],
    PositionAndCount: [()],
    Budget: [(2,), (0,), (7,)],
    BudgetOrNone: [(2,), (1,), (6,)],
    SharedBudget: [(4,), (0,), (17,), (100,)],
    Sum: [()],
    Role: [()],
    Scaled: [(2.0,), (0.5,), (-1.25,)],
    Task: [(2,), (0,), (39,)],
    Threshold: [(2,), (30,), (-1,)],
    Times: [(2,), (0,), (5,)],
    TwoNumbers: [(2.0, 1.0), (0.5, 3.5), (-1.0, 0.0)],
}
"""What each is given beside the node; the first of them when it is compiled."""


def tree(rng: random.Random, depth: int) -> Node:
    return Node(rng.randrange(12), [tree(rng, depth - 1) for _ in range(rng.randint(1, 3))] if depth else [])


def chain(length: int) -> Node:
    node = Node(1)
    for i in range(length):
        node = Node(i % 12, [node])
    return node


def structures() -> list[Node]:
    rng = random.Random(3)
    shared = tree(rng, 1)
    return [
        *(Node(3), chain(9), Node(2, [Node(i % 12) for i in range(7)])),
        *(Node(4, [Node(3, [shared, shared]), shared, Node(5)]), tree(rng, 1), tree(rng, 3)),
    ]


@pytest.mark.parametrize("kind", GIVEN)
def test_as_uncompiled(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(2)
    module, given = kind().eval(), GIVEN[kind]
    calls = [(node, *each) for each in given for node in structures()]
    with torch.no_grad():
        fast = cortex.compile(module, examples=[(tree(random.Random(1), 2), *given[0])], check=False)
        expected = torch.stack([module(*call) for call in calls])
        torch.testing.assert_close(torch.stack([fast(*call) for call in calls]), expected)
        torch.testing.assert_close(fast(calls if given[0] else [node for (node,) in calls]), expected)
    assert len(fast._made) <= 2  # a default is a constant
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    for call in calls:
        assert torch.equal(torch.as_tensor(loaded(*call)), fast(*call))


@pytest.mark.parametrize("kind", [DepthAsIndex, Scaled, Threshold, SharedBudget])
def test_values_make_no_kinds(kind: Any) -> None:
    module, given = kind().eval(), GIVEN[kind]
    with torch.no_grad():
        fast = cortex.compile(module, examples=[(node, *each) for node in structures() for each in given])
        before = [run.compilations for _, run in fast._made.values()]
        deep = Node(11, [chain(20), tree(random.Random(5), 3)])
        value = 13 if type(given[0][0]) is int else 0.375
        torch.testing.assert_close(fast(deep, value), module(deep, value))
    assert [run.compilations for _, run in fast._made.values()] == before


def test_a_loaded_module_takes_other_numbers(tmp_path: Path) -> None:
    module = DepthAsIndex().eval()
    cortex.compile(module, examples=[(chain(3), 4)]).save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    with torch.no_grad():
        for arguments in ((chain(12), 17), (chain(2),)):
            torch.testing.assert_close(torch.as_tensor(loaded(*arguments)), module(*arguments))


class Ring:
    def __init__(self, word: int) -> None:
        self.word = word
        self.next: Any = None


def ring(size: int) -> Ring:
    nodes = [Ring(i) for i in range(size)]
    for node, after in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        node.next = after
    return nodes[0]


class Rounds(Base):
    """Only the number ends it: nodes lead back to themselves."""

    def encode(self, node: Any, rounds: int) -> Any:
        if rounds == 0:
            return self.word(node)
        return torch.tanh(self.lin(self.encode(node.next, rounds - 1)) + self.encode(node, rounds - 1))

    def forward(self, node: Any, rounds: int) -> Any:
        return self.encode(node, rounds)


class Endless(Base):
    def encode(self, node: Any, rounds: int) -> Any:
        return self.word(node) if rounds == 0 else torch.tanh(self.encode(node.next, rounds + 1))

    def forward(self, node: Any) -> Any:
        return self.encode(node, 1)


def test_calls_that_only_a_number_ends() -> None:
    module = Rounds().eval()
    with torch.no_grad():
        fast = cortex.compile(module, examples=[(ring(5), 4)])
        for call in ((ring(3), 4), (ring(4), 6), (ring(2), 0)):
            torch.testing.assert_close(fast(*call), module(*call))


def test_calls_without_end_are_refused() -> None:
    with pytest.raises(
        cortex.ModelError, match="encode is called with more than 64 different constants as its argument 'rounds'"
    ):
        cortex.compile(Endless().eval(), examples=[ring(3)], check=False)
