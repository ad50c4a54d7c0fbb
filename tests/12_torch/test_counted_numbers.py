"""What code computes from a number of children is data: one kind for every number, before saving and after."""

from __future__ import annotations

import math
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cortex

NUMBERS = (0, 1, 2, 5, 7, 16, 33, 65, 130)


class Node:
    def __init__(self, word: int, children: tuple[Node, ...] = ()) -> None:
        self.word, self.children = word, list(children)


def star(count: int) -> Node:
    return Node(count % 5, tuple(Node(i % 5) for i in range(count)))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.lin = nn.Embedding(5, 4), nn.Linear(4, 4)

    def scale(self, node: Any) -> Any:
        raise NotImplementedError

    def forward(self, node: Any) -> Any:
        h = self.table(torch.tensor(node.word))
        for child in node.children:
            h = h + self(child)
        return torch.tanh(self.lin(h * self.scale(node)))


class Remainder(Scaled):
    def scale(self, node: Any) -> Any:
        return len(node.children) % 3


class Half(Scaled):
    def scale(self, node: Any) -> Any:
        return float(len(node.children) // 2)


class Parity(Scaled):
    def scale(self, node: Any) -> Any:
        return (len(node.children) & 1) + 1


class Bits(Scaled):
    def scale(self, node: Any) -> Any:
        return float(len(node.children).bit_length())


class Root(Scaled):
    def scale(self, node: Any) -> Any:
        return 1 / math.sqrt(len(node.children) + 1)


class Power(Scaled):
    def scale(self, node: Any) -> Any:
        return (len(node.children) + 1) ** -0.5


class Logarithm(Scaled):
    def scale(self, node: Any) -> Any:
        return log1p(len(node.children)) / math.log(2)


class Mean(Scaled):
    def scale(self, node: Any) -> Any:
        return 1 / max(1, len(node.children))


class Chosen(Scaled):
    def scale(self, node: Any) -> Any:
        return 2.0 if len(node.children) % 3 == 1 else 0.5


class OfField(Scaled):
    """A function of a number on the node."""

    def scale(self, node: Any) -> Any:
        return math.log(node.word + 1) + math.sqrt(float(node.word))


MODULES = (Remainder, Half, Parity, Bits, Root, Power, Logarithm, Mean, Chosen, OfField)


@pytest.mark.parametrize("kind", MODULES)
def test_modules(kind: type[Scaled], tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    with torch.no_grad():
        fast = cortex.compile(module, examples=[star(n) for n in range(4)], check=False)  # the first is a single node
        fast.save(tmp_path / "module.cortex")
        loaded = cortex.load(tmp_path / "module.cortex")
        for n in NUMBERS:
            torch.testing.assert_close(torch.as_tensor(loaded(star(n))), module(star(n)), rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(fast(star(n)), module(star(n)), rtol=1e-4, atol=1e-4)


@cortex.model
def remainder(node: Any, w: Any) -> Any:
    h = w.E[node.word] + cortex.sum(remainder(k, w) for k in node.children)
    return cortex.tanh(h * (len(node.children) % 3))


@cortex.model
def root(node: Any, w: Any) -> Any:
    h = w.E[node.word] + cortex.sum(root(k, w) for k in node.children)
    return cortex.tanh(h / math.sqrt(len(node.children) + 1))


@cortex.model
def chosen(node: Any, w: Any) -> Any:
    h = w.E[node.word] + cortex.sum(chosen(k, w) for k in node.children)
    return cortex.tanh(h * (1.0 if len(node.children) % 3 == 0 else 2.0))


@pytest.mark.parametrize("model", [remainder, root, chosen])
def test_functions(model: Any, tmp_path: Path) -> None:
    weights = {"E": np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)}
    fast = cortex.compile(model, weights, examples=[star(n) for n in range(4)])
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    for n in NUMBERS:
        want = model(star(n), weights)
        for result in (fast(star(n)), loaded(star(n))):
            np.testing.assert_allclose(np.asarray(getattr(result, "out", result)), want, rtol=1e-5, atol=1e-5)


class Shifted(Scaled):
    def forward(self, node: Any) -> Any:
        return self.table(torch.tensor(node.word - 2 * len(node.children) + 1))


@pytest.mark.parametrize(("node", "said"), [(Node(9), "is 10"), (Node(-8), "is -7")])
def test_errors_name_the_expression(node: Node, said: str) -> None:
    with torch.no_grad():
        fast = cortex.compile(Shifted().eval(), examples=[Node(1)], check=False)
        with pytest.raises(
            cortex.StructureError, match=rf"node\.word.*{said}; it must be an integer from 0 to 4"
        ) as error:
            fast(node)
    assert "computed_" not in str(error.value)
