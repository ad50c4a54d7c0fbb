"""Identity and equality are those of the real nodes, texts and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from judged import judge
from torch import nn

import cortex


class Node:
    def __init__(self, tag: Any, *children: Any) -> None:
        self.tag, self.children = tag, list(children)
        self.parent: Any = None
        for child in self.children:
            child.parent = self

    @property
    def siblings(self) -> list[Any]:
        return [c for c in self.parent.children if c != self] if self.parent else []


def shared() -> Node:
    leaf = Node(2)
    return Node(1, leaf, Node(3), leaf)


STRUCTURES = (
    lambda: Node(1, Node(2), Node(3, Node(4), Node(5))),
    lambda: Node(1, Node(2, Node(1), Node(1), Node(7)), Node(3)),
    lambda: Node(3),
    shared,
)


class Down(nn.Module):
    """Each node is told apart by what it is for others."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(8, 3)

    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.tag)) * self.factor(node)
        for child in node.children:
            h = h + torch.tanh(self(child))
        return h


class First(Down):
    def factor(self, node: Any) -> Any:
        return 2 if node.parent is not None and node.parent.children[0] == node else 1


class FirstIs(Down):
    def factor(self, node: Any) -> Any:
        return 2 if node.parent is not None and node.parent.children[0] is node else 1


class LastIs(Down):
    def factor(self, node: Any) -> Any:
        return 3 if node.parent is not None and node is node.parent.children[-1] else 1


class InSiblings(Down):
    def factor(self, node: Any) -> Any:
        return 5 if node.parent is not None and node in node.parent.children[1:] else 1


class SetOf(Down):
    def factor(self, node: Any) -> Any:
        return 1 + len(set(node.children))


class Others(Down):
    def factor(self, node: Any) -> Any:
        if node.parent is None:
            return 1
        return 1 + len([c for c in node.parent.children if c != node])


class OthersStates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(8, 3)

    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.tag))
        if node.parent is not None:
            for other in [c for c in node.parent.children if c != node]:
                h = h + self.emb(torch.tensor(other.tag)) / 2
        for child in node.children:
            h = h + torch.tanh(self(child))
        return h


class Siblings(OthersStates):
    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.tag)) + len(node.siblings)
        for child in node.children:
            h = h + torch.tanh(self(child))
        return h


class Index(Down):
    def factor(self, node: Any) -> Any:
        return 1 if node.parent is None else 2 + node.parent.children.index(node)


class Count(Down):
    def factor(self, node: Any) -> Any:
        return 1 if node.parent is None else node.parent.children.count(node)


class SharedChild(Down):
    def factor(self, node: Any) -> Any:
        return 4 if len(node.children) > 2 and node.children[0] is node.children[2] else 1


class GrandParent(Down):
    def factor(self, node: Any) -> Any:
        return 4 if node.children and node.children[0].parent is node else 1


@pytest.mark.parametrize(
    "make",
    [First, FirstIs, LastIs, InSiblings, SetOf, Others, OthersStates, Siblings, Index, Count, SharedChild, GrandParent],
)
def test_nodes(make: type[nn.Module]) -> None:
    judge(make, STRUCTURES)


@dataclass
class Data:
    tag: int
    left: Data | None = None
    right: Data | None = None
    note: str = field(default="", compare=False)


@dataclass(eq=False)
class ById:
    tag: int
    left: ById | None = None
    right: ById | None = None
    note: str = ""


@dataclass(frozen=True, order=True)
class Frozen:
    tag: int
    left: Frozen | None = None
    right: Frozen | None = None
    note: str = field(default="", compare=False)


class EqualChildren(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(8, 3)

    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.tag))
        if node.left is None:
            return h
        return torch.tanh(h * (2 if node.left == node.right else 3) + self(node.left) - self(node.right))


class EqualNotes(EqualChildren):
    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.tag))
        if node.left is None:
            return h
        same = node.left == node.right and node.left.note != node.right.note
        return torch.tanh(h * (2 if same else 3) + self(node.left) - self(node.right))


class Unequal(EqualChildren):
    def forward(self, node: Any) -> Any:
        h = self.emb(torch.tensor(node.tag))
        if node.left is None:
            return h
        return torch.tanh(h * (node.left != node.right) + self(node.left) - 2 * self(node.right))


def records(make: Any) -> list[Any]:
    return [
        lambda: make(1, make(2), make(3)),
        lambda: make(1, make(2, note="a"), make(2, note="b")),
        lambda: make(1, make(2, make(4), make(4)), make(2, make(4, note="c"), make(4))),
        lambda: make(1, make(2, make(4), make(4)), make(2, make(4), make(5))),
    ]


@pytest.mark.parametrize("make", [EqualChildren, EqualNotes, Unequal])
@pytest.mark.parametrize("record", [Data, ById, Frozen])
def test_dataclasses(make: type[nn.Module], record: Any) -> None:
    judge(make, records(record))


class Folded(str):
    """A text that does not tell case."""

    def __eq__(self, other: object) -> bool:
        return str(self).lower() == str(other).lower()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self).lower())


class Rough(float):
    def __eq__(self, other: object) -> bool:
        return abs(float(self) - float(other)) < 0.1  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __gt__(self, other: object) -> bool:
        return float(self) > float(other) + 0.1  # type: ignore[arg-type]

    __hash__ = float.__hash__


class Cyclic(int):
    def __eq__(self, other: object) -> bool:
        return int(self) % 12 == int(other) % 12  # type: ignore[call-overload, no-any-return]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


class Tagged(nn.Module):
    def forward(self, node: Any) -> Any:
        h = torch.ones(2) * self.factor(node)
        for child in node.children:
            h = h + torch.tanh(self(child))
        return h


class TextIs(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.tag == "np" else 3 if node.tag != "VP" else 5


class TextIn(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.tag in ("np", "VP") else 5


class TextLookedUp(Tagged):
    def factor(self, node: Any) -> Any:
        return {"np": 2, "VP": 3}.get(node.tag, 5)


class TextOfChild(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.children and node.children[0].tag == node.tag else 5


TEXTS = (
    lambda: Node("np", Node("VP"), Node("np")),
    lambda: Node("NP", Node("vp"), Node("np")),
    lambda: Node(Folded("NP"), Node(Folded("np")), Node(Folded("vp"), Node("VP"))),
)


@pytest.mark.parametrize("make", [TextIs, TextIn, TextOfChild])
def test_texts_of_subclasses(make: type[nn.Module]) -> None:
    judge(make, TEXTS)


def test_texts_looked_up() -> None:
    judge(TextLookedUp, TEXTS[:2])
    with pytest.raises(cortex.StructureError, match="compares in its own way"):
        cortex.compile(TextLookedUp().eval(), examples=[TEXTS[0]()])(TEXTS[2]())


class NumberIs(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.tag == 1 else 3 if node.tag > 1 else 5


class NumberIn(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.tag in (1, 2) else 5


class NumberOfChild(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.children and node.children[0].tag == node.tag else 5


class NumberComputed(Tagged):
    def factor(self, node: Any) -> Any:
        return node.tag + 1 if node.tag != 0.5 else node.tag * 7


class IsTrue(Tagged):
    def factor(self, node: Any) -> Any:
        return 2 if node.tag is True else 3 if node.tag is False else 5 if node.tag == 1 else 7


class Tenth(Tagged):
    def factor(self, node: Any) -> Any:
        return (2 if node.tag == 0.1 else 3) + (5 if node.tag > 0.1 else 7) + (11 if node.tag <= 0.1 else 13)


NUMBERS = (
    lambda: Node(1, Node(2.0), Node(0.5)),
    lambda: Node(True, Node(False), Node(1), Node(0), Node(np.bool_(True))),
    lambda: Node(Rough(1.05), Node(1.05), Node(Rough(0.95), Node(Rough(1.3)))),
    lambda: Node(Cyclic(13), Node(Cyclic(1)), Node(25, Node(Cyclic(2)))),
    lambda: Node(np.float32(0.1), Node(0.1), Node(np.float64(0.1)), Node(np.float32(1))),
    lambda: Node(np.int64(1), Node(np.float16(0.1)), Node(np.int8(2), Node(np.uint8(1)))),
)


@pytest.mark.parametrize("make", [NumberIs, NumberIn, NumberOfChild, NumberComputed, IsTrue, Tenth])
def test_numbers_of_subclasses(make: type[nn.Module]) -> None:
    judge(make, NUMBERS)
