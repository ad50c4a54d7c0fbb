"""How many kinds of node a module has: as few as what it does tells apart."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import nodes
import pytest
import torch
from torch import nn

import cortex

H, RELATIONS = 5, 4


class Word:
    """A word with its relation to the word above it."""

    def __init__(self, word: int, relation: int, label: str, note: Any, children: list[Any]) -> None:
        self.word, self.relation, self.label, self.note, self.children = word, relation, label, note, children
        self.text = str(word)

    def words(self) -> list[Any]:
        """All words below, this one first."""
        return [self] + [below for child in self.children for below in child.words()]


def sentence(depth: int = 2, most: int = 3) -> Word:
    below = [sentence(depth - 1, most) for _ in range(random.randint(1, most))] if depth else []
    made = random.randrange(nodes.WORDS), random.randrange(RELATIONS), random.choice("ab"), random.choice([None, 1])
    return Word(*made, below)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.relations = nn.Embedding(nodes.WORDS, H), nn.Embedding(RELATIONS, H)
        self.one, self.two = nn.Linear(H, H), nn.Linear(2 * H, H)
        self.weight = nn.Parameter(torch.randn(RELATIONS, H, H) * 0.4)
        self.labels = nn.ModuleDict({"a": nn.Linear(H, H), "b": nn.Linear(H, H)})

    def word(self, node):
        return self.emb(torch.tensor(node.word))


class Embedded(Base):
    """The embedding of the relation gates the child's state."""

    def forward(self, node):
        h = self.word(node)
        for child in node.children:
            h = h + torch.sigmoid(self.relations(torch.tensor(child.relation))) * self(child)
        return torch.tanh(h)


class Stacked(Base):
    """Relations of all children at once."""

    def forward(self, node):
        h = self.word(node)
        below = [self(child) for child in node.children]
        if below:
            gates = self.relations(torch.tensor([child.relation for child in node.children]))
            h = h + (gates * torch.stack(below)).sum(0)
        return torch.tanh(h)


class Matrices(Base):
    """A matrix for each relation, states on the nodes, a head."""

    def encode(self, node):
        h = self.word(node)
        for child in node.children:
            self.encode(child)
        for child in node.children:
            h = h + self.weight[child.relation] @ child.h
        node.h = torch.tanh(h)

    def forward(self, node):
        self.encode(node)
        return self.one(node.h)


class Noted(Base):
    """Asks of children what decides nothing."""

    def forward(self, node):
        h = self.word(node)
        for child in node.children:
            if child.note is None:
                pass
            h = h + self(child)
        return torch.tanh(h)


class Ordered(Base):
    """Compares the word with constants; words are many."""

    def forward(self, node):
        h = self.word(node) if node.word < nodes.WORDS // 2 else -self.word(node)
        if node.word >= 2.5:
            h = h + 1
        for child in node.children:
            h = h + self(child)
        return torch.tanh(h)


class Pooled(Base):
    """Two passes, and the maximum over both states of all words."""

    def up(self, node):
        h = self.word(node)
        for child in node.children:
            h = h + self.up(child)
        node.h = torch.tanh(self.one(h))
        return node.h

    def down(self, node, above):
        node.d = torch.tanh(self.two(torch.cat([node.h, above])))
        for child in node.children:
            self.down(child, node.d)

    def forward(self, node):
        self.up(node)
        self.down(node, torch.zeros(H))
        return torch.stack([torch.cat([word.h, word.d]) for word in node.words()]).max(0)[0]


class PassesLater(Base):
    """What is passed to the second child depends on what is asked after the first call."""

    def down(self, node, above):
        h = torch.tanh(self.one(above))
        if node.left is None:
            return h + self.word(node)
        total = self.down(node.left, h)
        if node.right.left is None:
            total = total + self.down(node.right, h)
        return total

    def forward(self, node):
        return self.down(node, torch.zeros(H))


class Labelled(Base):
    """A layer for each label of a child."""

    def forward(self, node):
        h = self.word(node)
        for child in node.children:
            h = h + self.labels[child.label](self(child))
        return torch.tanh(h)


def compiled(kind: Callable[[], nn.Module], structures: list[Any]) -> Any:
    torch.manual_seed(5)
    module = kind().eval()
    fast = cortex.compile(module, examples=structures)
    with torch.no_grad():
        for given in structures:
            torch.testing.assert_close(fast(given), module(given), rtol=1e-4, atol=1e-5)
    return fast


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [(Embedded, 2), (Stacked, 2), (Matrices, 3), (Noted, 2), (Ordered, 6), (Pooled, 6)],
)
def test_kinds(kind: Callable[[], nn.Module], kinds: int) -> None:
    random.seed(5)
    structures = [sentence(depth) for depth in (2, 2, 2, 1, 0)]
    fast = compiled(kind, structures)
    run = fast.executable(structures[0])
    found = [k.name for k in run.compiled.model.kinds]
    assert len(found) <= kinds, found
    assert not any("node_h" in s.name for s in run.compiled.model.states if kind is Pooled), "kept with what up returns"
    if kind in (Embedded, Stacked, Noted, Pooled):
        before = run.compilations
        fast(sentence(1, 9))
        assert run.compilations == before


class Special(Pooled):
    """Passes something else to seven children."""

    def down(self, node, above):
        node.d = torch.tanh(self.two(torch.cat([node.h, above])))
        for child in node.children:
            self.down(child, -node.d if len(node.children) == 7 else node.d)


def test_numbers_of_children_that_values_are_passed_to_by_themselves() -> None:
    random.seed(5)
    torch.manual_seed(5)
    module = Special().eval()
    fast = cortex.compile(module, examples=[sentence(1, 3), sentence(0)])
    with torch.no_grad():
        for number in (6, 7):
            given = sentence(0)
            given.children = [sentence(0) for _ in range(number)]
            torch.testing.assert_close(fast(given), module(given), rtol=1e-4, atol=1e-5)


def test_late_questions_matter_where_more_is_passed_after_them() -> None:
    random.seed(5)
    compiled(PassesLater, [nodes.pairs(2), nodes.pairs(4), nodes.pairs(5)])


def test_kinds_by_labels_of_children_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(5)
    monkeypatch.setattr("cortex.frontend.trace.MANY", 4)
    with pytest.warns(UserWarning, match=r"depends on child\.label, and.*self\.table\[self\.ids\[child\.label\]\]"):
        structures = [sentence(2, 2) for _ in range(3)]
        fast = compiled(Labelled, structures)
    assert "what it does depends on 'label' of a child" in fast.executable(structures[0]).explain()


class LookedUp(Base):
    """A dictionary with words for keys, of something else than numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = {word: [word % 3] for word in range(nodes.WORDS)}

    def forward(self, node):
        h = self.emb(torch.tensor(self.table[self.key(node)])).reshape(-1)
        for child in node.children:
            h = h + self(child)
        return torch.tanh(h)


class ByNumber(LookedUp):
    def key(self, node):
        return node.word


class ByText(LookedUp):
    def __init__(self) -> None:
        super().__init__()
        self.table = {str(word): numbers for word, numbers in self.table.items()}

    def key(self, node):
        return node.text


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ByNumber, r"the value of node\.word, .*self\.table\[node\.word\]"),
        (ByText, r"the value of node\.text, .*self\.table\[self\.ids\[node\.text\]\]"),
    ],
)
def test_kinds_by_words_are_warned_of(kind: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(5)
    monkeypatch.setattr("cortex.frontend.trace.MANY", 4)
    with pytest.warns(UserWarning, match=said):
        compiled(kind, [sentence(1, 2) for _ in range(3)])
