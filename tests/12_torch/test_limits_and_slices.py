"""Numbers of children that are compared with limits, slices, and first or last children are kinds of any arity."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex

SIZE = 4
NUMBERS = (0, 1, 2, 3, 4, 7, 11, 12, 19, 20, 21, 22, 40)


def star(count: int, word: int = 1) -> Any:
    return SimpleNamespace(word=word, children=[star(0, i % 5) for i in range(count)])


class Base(nn.Module):
    most = 20

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.emb, self.inner = nn.Embedding(5, SIZE), nn.Linear(SIZE, SIZE)

    def x(self, node: Any) -> torch.Tensor:
        return self.emb(torch.tensor(node.word))

    def total(self, nodes: Any, x: torch.Tensor) -> torch.Tensor:
        for child in nodes:
            x = x + self.inner(self(child))
        return x


class Limit(Base):
    def forward(self, node: Any) -> torch.Tensor:
        x = self.total(node.children, self.x(node))
        return torch.tanh(x / 2 if len(node.children) > self.most else x)


class Exactly(Base):
    def forward(self, node: Any) -> torch.Tensor:
        count = len(node.children)
        x = self.total(node.children, self.x(node))
        return torch.tanh(x * 3 if count == 11 else x)


class Buckets(Base):
    def forward(self, node: Any) -> torch.Tensor:
        count = len(node.children)
        scale = 1.0 if count < 4 else 0.5 if count < 12 else 0.25
        return torch.tanh(self.x(node) + scale * self.total(node.children, torch.zeros(SIZE)))


class Counter(Base):
    """The counter of a loop is no limit, though it meets the number in the code."""

    def forward(self, node: Any) -> torch.Tensor:
        i, x = 0, self.x(node)
        while i < len(node.children):
            x, i = x + 3 * self(node.children[i]), i + 1
        return torch.tanh(x)


class First(Base):
    def forward(self, node: Any) -> torch.Tensor:
        return torch.tanh(self.total(node.children[:3], self.x(node)))


class Middle(Base):
    def forward(self, node: Any) -> torch.Tensor:
        return torch.tanh(self.total(node.children[1:-1], self.x(node)))


class Ends(Base):
    def forward(self, node: Any) -> torch.Tensor:
        x = self.total(node.children, self.x(node))
        if node.children:
            x = x + self(node.children[0]) - 2 * self(node.children[-1])
        return torch.tanh(x)


class FirstOfMany(Base):
    def forward(self, node: Any) -> torch.Tensor:
        kids = node.children
        return torch.tanh(self.total(kids[: self.most], self.x(node)))


class Joined(Base):
    """Python joins lists without calling a method of the second."""

    def forward(self, node: Any) -> torch.Tensor:
        x = self.total(node.children[:2], self.x(node))
        return torch.tanh(x * len([node] + node.children))  # noqa: RUF005


@torch.no_grad()
def test_a_list_joined_to_another_is_counted() -> None:
    eager = Joined().eval()
    fast = cortex.compile(eager, examples=[star(0), star(2), star(5)], check=False)
    for count in (0, 1, 3, 4):
        torch.testing.assert_close(fast(star(count)), eager(star(count)), atol=1e-5, rtol=1e-4)


MODULES = (Limit, Exactly, Buckets, Counter, First, Middle, Ends, FirstOfMany)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
@torch.no_grad()
def test_numbers_are_not_kinds(module: type[Base]) -> None:
    eager = module().eval()
    fast = cortex.compile(eager, examples=[star(0), star(2), star(5)], check=False)
    for count in NUMBERS:
        torch.testing.assert_close(fast(star(count)), eager(star(count)), atol=1e-5, rtol=1e-4)
    assert fast.program.compilations <= 4, "not one for each number"


@pytest.mark.parametrize("module", [Limit, First, Ends], ids=lambda m: m.__name__)
@torch.no_grad()
def test_saved_modules_take_all_numbers(module: type[Base], tmp_path: Path) -> None:
    eager = module().eval()
    fast = cortex.compile(eager, examples=[star(0), star(2), star(5)])
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    for count in (*NUMBERS, 130):
        torch.testing.assert_close(torch.as_tensor(loaded(star(count))), eager(star(count)), atol=1e-5, rtol=1e-4)
