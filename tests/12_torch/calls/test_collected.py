"""Lists that recursive calls add to, used in forward: all states of a tree in the order of the calls."""

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
        self.inner = nn.Linear(4, 4)
        self.score = nn.Linear(4, 1)
        self.states: list[Any] = []
        self.leaves: list[Any] = []

    def cell(self, node: Any, below: Any) -> Any:
        return torch.tanh(self.inner(self.emb(torch.tensor(node.word)) + sum(below, torch.zeros(4))))

    def attend(self, states: Any) -> Any:
        weights = torch.softmax(self.score(states), 0)
        return (weights * states).sum(0)


class Argument(Base):
    def encode(self, node: Any, out: list[Any]) -> Any:
        h = self.cell(node, [self.encode(child, out) for child in node.children])
        out.append(h)
        return h

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.encode(node, out)
        return self.attend(torch.stack(out))


class Mean(Argument):
    """Item by item, and how many there are; with items of forward's own."""

    def forward(self, node: Any) -> Any:
        out = [torch.ones(4)]
        self.encode(node, out)
        return sum(out) / len(out)


class Twice(Argument):
    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.encode(node, out)
        self.encode(node, out)
        return torch.stack(out).sum(0)


class OnlyLeaves(Base):
    def encode(self, node: Any, out: list[Any]) -> Any:
        if not node.children:
            out.append(self.emb(torch.tensor(node.word)))
            return out[-1] if False else self.emb(torch.tensor(node.word))
        return self.cell(node, [self.encode(child, out) for child in node.children])

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        h = self.encode(node, out)
        return h + self.attend(torch.stack(out))


class TopDown(Base):
    """Before the calls below, which are passed the state."""

    def walk(self, node: Any, above: Any, out: list[Any]) -> None:
        h = torch.tanh(self.inner(self.emb(torch.tensor(node.word)) + above))
        out.append(h)
        for child in node.children:
            self.walk(child, h, out)

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.walk(node, torch.zeros(4), out)
        states = torch.stack(out)
        return self.attend(states) + states.max(0)[0]


class Tuples(Base):
    def encode(self, node: Any, out: list[Any]) -> Any:
        h = self.cell(node, [self.encode(child, out) for child in node.children])
        out.append((h, self.score(h)))
        return h

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.encode(node, out)
        return torch.cat([torch.stack([h for h, _ in out]).mean(0), torch.stack([s for _, s in out]).max(0)[0]])


class Attributes(Base):
    def encode(self, node: Any) -> Any:
        h = self.cell(node, [self.encode(child) for child in node.children])
        self.states.append(h)
        if not node.children:
            self.leaves.append(self.score(h))
        return h

    def forward(self, node: Any) -> Any:
        self.states = []
        self.leaves = []
        self.encode(node)
        return torch.cat([torch.stack(self.states).sum(0), torch.stack(self.leaves).mean(0)])


class Returned(Base):
    def encode(self, node: Any) -> Any:
        below = [self.encode(child) for child in node.children]
        h = self.cell(node, [state for state, _ in below])
        states = []
        for _, theirs in below:
            states += theirs
        return h, [*states, h]

    def forward(self, node: Any) -> Any:
        return torch.stack(self.encode(node)[1]).mean(0)


class Extended(Base):
    def encode(self, node: Any) -> Any:
        states, below = [], []
        for child in node.children:
            h, theirs = self.encode(child)
            below.append(h)
            states.extend(theirs)
        states.append(self.cell(node, below))
        return states[-1] if not node.children else self.cell(node, below), states

    def forward(self, node: Any) -> Any:
        return torch.cat([h.unsqueeze(0) for h in self.encode(node)[1]], 0).sum(0)


class InnerFunction(Base):
    def forward(self, node: Any) -> Any:
        def words(at: Any) -> list[Any]:
            if not at.children:
                return [self.emb(torch.tensor(at.word))]
            found = []
            for child in at.children:
                found += words(child)
            return found

        return self.attend(torch.stack(words(node)))


class TwoLists(Base):
    """One list or the other, and one of them may stay empty."""

    def encode(self, node: Any, leaves: list[Any], inner: list[Any]) -> Any:
        h = self.cell(node, [self.encode(child, leaves, inner) for child in node.children])
        (inner if node.children else leaves).append(h)
        return h

    def forward(self, node: Any) -> Any:
        leaves: list[Any] = []
        inner: list[Any] = []
        self.encode(node, leaves, inner)
        return sum(leaves, torch.zeros(4)) + 2 * sum(inner, torch.zeros(4))


class LastChildFirst(Base):
    """The order is not that of the calls; the weights depend on the place."""

    def encode(self, node: Any) -> list[Any]:
        below = [self.encode(child) for child in node.children]
        states = []
        for theirs in reversed(below):
            states += theirs
        return [*states, self.cell(node, [])]

    def forward(self, node: Any) -> Any:
        total = torch.zeros(4)
        for h in self.encode(node):
            total = total * 0.5 + h
        return total


class TwiceExtended(Base):
    """Each child's list is there twice, so that what is deep is there often."""

    def encode(self, node: Any) -> list[Any]:
        states = [self.cell(node, [])]
        for child in node.children:
            theirs = self.encode(child)
            states += theirs
            states += theirs
        return states

    def forward(self, node: Any) -> Any:
        return torch.stack(self.encode(node)).mean(0)


class Slices(Argument):
    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.encode(node, out)
        return torch.cat([out[0], out[len(out) // 2], torch.stack(out[:3]).sum(0) + torch.stack(out[-2:]).sum(0)])


class ChangedBeforeReturn(Base):
    """The entry is the tensor, not what it was when it was added."""

    def encode(self, node: Any, out: list[Any]) -> Any:
        h = self.cell(node, [self.encode(child, out) for child in node.children])
        out.append(h)
        h *= 2
        return h

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.encode(node, out)
        return torch.stack(out).sum(0)


MODULES = [
    Argument, Mean, Twice, OnlyLeaves, TopDown, Tuples, Attributes, Returned, Extended, InnerFunction, TwoLists,
    LastChildFirst, TwiceExtended, Slices, ChangedBeforeReturn,
]  # fmt: skip


def tree(rng: random.Random, depth: int) -> Node:
    return Node(rng.randrange(12), [tree(rng, depth - 1) for _ in range(rng.randrange(1, 4))] if depth else [])


def structures() -> list[Node]:
    rng = random.Random(3)
    chain = Node(0)
    for word in range(9):
        chain = Node(word, [chain])
    shared = tree(rng, 1)
    dag = Node(4, [Node(3, [shared, shared]), shared, Node(5)])
    return [Node(7), chain, Node(2, [Node(i % 12) for i in range(11)]), dag, *(tree(rng, i % 4) for i in range(8))]


@pytest.mark.parametrize("kind", MODULES)
def test_as_uncompiled(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(2)
    module = kind().eval()
    batch = structures()
    with torch.no_grad():
        fast = cortex.compile(module, examples=[tree(random.Random(1), 2)], check=False)
        expected = torch.stack([module(each) for each in batch])
        torch.testing.assert_close(torch.stack([fast(each) for each in batch]), expected)
        assert torch.equal(fast(batch), torch.stack([fast(each) for each in batch]))
        fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    assert torch.equal(torch.as_tensor(loaded(batch)), fast(batch))


def test_order_is_that_of_the_calls() -> None:
    """The weights depend on the position, so that another order is another result."""

    class Ordered(Argument):
        def forward(self, node: Any) -> Any:
            out: list[Any] = []
            self.encode(node, out)
            total = torch.zeros(4)
            for h in out:
                total = total * 0.5 + h
            return total

    torch.manual_seed(2)
    module = Ordered().eval()
    example = tree(random.Random(5), 2)
    with torch.no_grad():
        torch.testing.assert_close(cortex.compile(module, examples=[example], check=False)(example), module(example))


class CallerChanges(Base):
    """Changes the result of a call, which is an entry too."""

    def encode(self, node: Any, out: list[Any]) -> Any:
        h = self.emb(torch.tensor(node.word))
        for child in node.children:
            theirs = self.encode(child, out)
            theirs += 1
            h = h + theirs
        h = torch.tanh(h)
        out.append(h)
        return h

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.encode(node, out)
        return torch.stack(out).sum(0)


class ForwardChanges(Argument):
    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        h = self.encode(node, out)
        h += 1
        return torch.stack(out).sum(0)


class EntryChanges(Argument):
    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        h = self.encode(node, out)
        out[-1] += 1
        return h


class AttributeChanges(Attributes):
    def forward(self, node: Any) -> Any:
        self.states = []
        self.leaves = []
        self.encode(node).mul_(3)
        return torch.stack(self.states).sum(0)


class ReturnedChanges(Returned):
    def forward(self, node: Any) -> Any:
        h, states = self.encode(node)
        h.mul_(2)
        return torch.stack(states).sum(0)


class ArgumentChanges(Base):
    """What was passed down is an entry, and the caller changes it afterwards."""

    def walk(self, node: Any, above: Any, out: list[Any]) -> None:
        out.append(above)
        h = torch.tanh(above + self.emb(torch.tensor(node.word)))
        for child in node.children:
            self.walk(child, h, out)
        h += 1

    def forward(self, node: Any) -> Any:
        out: list[Any] = []
        self.walk(node, torch.zeros(4), out)
        return torch.stack(out).sum(0)


@pytest.mark.parametrize(
    "kind", [CallerChanges, ForwardChanges, EntryChanges, AttributeChanges, ReturnedChanges, ArgumentChanges]
)
def test_entries_that_are_changed_in_place_are_refused(kind: Any) -> None:
    with pytest.raises(cortex.ModelError, match="changed in place, and others can see it"):
        cortex.compile(kind().eval(), examples=[tree(random.Random(1), 2)], check=False)
