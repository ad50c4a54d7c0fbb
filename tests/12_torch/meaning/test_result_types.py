"""Results of integers and truth values have torch's element types."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from judged import judge
from torch import nn


class Node:
    def __init__(self, word: int, *kids: Node) -> None:
        self.word, self.kids = word, list(kids)
        self.ids = torch.tensor([word, 2, 3])
        self.flag = torch.tensor([word > 1, False])


STRUCTURES = (
    lambda: Node(1, Node(2), Node(3, Node(4))),
    lambda: Node(2, Node(4), Node(1), Node(3, Node(4, Node(0), Node(1)))),
    lambda: Node(0),
)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(5, 4)

    def own(self, node: Any) -> Any:
        return self.emb(torch.tensor(node.word))


class Argmax(Base):
    def up(self, node: Any) -> Any:
        return self.own(node) + sum(self.up(kid) for kid in node.kids)

    def forward(self, node: Any) -> Any:
        h = self.up(node)
        return h.argmax(), h > 0, (h > 0).sum(), (h > 0).int(), h.max(0).indices, (h > 0).long() * 3


class Counts(Base):
    """How many nodes there are."""

    def forward(self, node: Any) -> Any:
        n = torch.tensor(1)
        for kid in node.kids:
            n = n + self(kid)
        return n


class Votes(Base):
    def forward(self, node: Any) -> Any:
        votes = (self.own(node) > 0).long()
        for kid in node.kids:
            votes += self(kid)
        return votes


class Any_(Base):
    def forward(self, node: Any) -> Any:
        found = self.own(node).sum() > 0
        for kid in node.kids:
            found = found | self(kid)
        return found


class FieldOfIntegers(Base):
    def forward(self, node: Any) -> Any:
        ids = node.ids
        for kid in node.kids:
            ids = torch.maximum(ids, self(kid))
        return ids


class FieldOfTruth(Base):
    def forward(self, node: Any) -> Any:
        flag = node.flag
        for kid in node.kids:
            flag = flag & ~self(kid)
        return flag


class InADict(Base):
    def forward(self, node: Any) -> Any:
        below = [self(kid) for kid in node.kids]
        h = self.own(node) + sum(each["h"] for each in below)
        size = torch.tensor(node.word) + sum(each["size"] for each in below)
        return {"h": h, "best": h.argmax(-1), "size": size, "on": (h > 0).all()}


class Height(Base):
    def forward(self, node: Any) -> Any:
        if not node.kids:
            return torch.tensor(0)
        return torch.stack([self(kid) for kid in node.kids]).max() + 1


@pytest.mark.parametrize(
    "make",
    [Argmax, Counts, Votes, Any_, FieldOfIntegers, FieldOfTruth, InADict, Height],
)
def test_types_of_results(make: type[nn.Module]) -> None:
    judge(make, STRUCTURES)
