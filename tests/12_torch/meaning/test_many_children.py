"""Hundreds of children: limits in the code stay right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from judged import judge
from torch import nn

import cortex


class Node:
    def __init__(self, word: int, children: Any = ()) -> None:
        self.word, self.children = word, list(children)


def flat(n: int) -> Any:
    return lambda: Node(n % 7, [Node(i % 7) for i in range(n)])


def two_levels() -> Any:
    return Node(1, [flat(n)() for n in (3, 301, 12)])


STRUCTURES = (flat(3), flat(300), flat(301), flat(400), two_levels)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(7, 3)

    def own(self, node: Any) -> Any:
        return self.emb(torch.tensor(node.word))


class First300(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for child in node.children[:300]:
            h = h + self(child) / 50
        return torch.tanh(h)


class Last300(Base):
    def forward(self, node: Any) -> Any:
        found = [self(child) for child in node.children[-300:]]
        return torch.tanh(self.own(node) + (torch.stack(found).mean(0) if found else 0))


class MoreThan300(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        if len(node.children) > 300:
            return h * 2
        return torch.tanh(h + sum(self(child) for child in node.children) / 50)


class MoreThan300Sum(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node) + sum(self(child) for child in node.children) / 50
        return h * 2 if len(node.children) > 300 else torch.tanh(h)


class Exactly300(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node) + sum(self(child) for child in node.children) / 50
        return h - 1 if len(node.children) == 300 else torch.tanh(h)


class EverySecond(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for child in node.children[::2]:
            h = h + self(child) / 50
        return torch.tanh(h)


class WithoutTheFirst(Base):
    def forward(self, node: Any) -> Any:
        return torch.tanh(self.own(node) + sum(self(child) for child in node.children[1:]) / 50)


class Breaks(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for i, child in enumerate(node.children):
            if i >= 300:
                break
            h = h + self(child) / 50
        return torch.tanh(h)


class At300(Base):
    """A single child far behind."""

    def forward(self, node: Any) -> Any:
        h = self.own(node)
        if len(node.children) > 300:
            h = h + self(node.children[300])
        return torch.tanh(h)


class MaxOfFirst(Base):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        if node.children:
            h = h + torch.stack([self(child) for child in node.children[:300]]).amax(0)
        return torch.tanh(h)


class LimitOfModule(Base):
    def __init__(self) -> None:
        super().__init__()
        self.most = 300

    def forward(self, node: Any) -> Any:
        taken = node.children[: self.most]
        return torch.tanh(self.own(node) + sum(self(child) for child in taken) / max(len(taken), 1))


@pytest.mark.parametrize(
    "make",
    [
        First300, Last300, MoreThan300, MoreThan300Sum, Exactly300, EverySecond, WithoutTheFirst, At300, MaxOfFirst,
        LimitOfModule,
    ],
)  # fmt: skip
def test_limits(make: type[nn.Module]) -> None:
    judge(make, STRUCTURES)


def test_a_loop_that_ends_early_is_refused(golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(Breaks().eval(), examples=[flat(3)()])
    with pytest.raises(cortex.ModelError) as raised:
        fast(flat(400)())
    golden("errors/meaning/many_children_one_by_one", raised.value.message)


def test_saved_slices(tmp_path: Path) -> None:
    module = First300().eval()
    fast = cortex.compile(module, examples=[flat(3)(), flat(400)()])
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(loaded(flat(400)())), module(flat(400)()))
