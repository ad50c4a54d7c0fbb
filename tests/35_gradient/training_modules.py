"""Structures and checks that the tests of training share."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import cortex
from cortex.cost.choose import ALWAYS
from cortex.schedule.default import DEFAULT

torch = pytest.importorskip("torch")


class Node:
    def __init__(self, word: int, children: Any = ()) -> None:
        self.word = word
        self.children = list(children)


def tree(rng: Random, count: int) -> Node:
    if count == 1:
        return Node(rng.randrange(20))
    sizes = [1] * rng.randint(1, min(3, count - 1))
    for _ in range(count - 1 - len(sizes)):
        sizes[rng.randrange(len(sizes))] += 1
    return Node(rng.randrange(20), [tree(rng, n) for n in sizes])


def trees(count: int = 5, seed: int = 0) -> list[Node]:
    rng = Random(seed)
    return [tree(rng, rng.randint(1, 12)) for _ in range(count)]


def gradients(module: Any) -> dict[str, Any]:
    found = {name: p.grad for name, p in module.named_parameters()}
    return {name: g if g is None else (g.to_dense() if g.is_sparse else g).clone() for name, g in found.items()}


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, g in wanted.items():
        assert (g is None) == (found[name] is None), name
        if g is not None:
            torch.testing.assert_close(found[name], g, rtol=1e-4, atol=1e-6 + 1e-5 * float(g.abs().max()))


def compiled(module: Any, examples: list[Any] | None = None) -> Any:
    """The module, compiled quickly, in training."""
    return cortex.compile(module, examples=examples or trees(), check=False, choices=DEFAULT, recursion=ALWAYS).train()
