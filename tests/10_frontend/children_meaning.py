"""Models over children as plain Python functions: what NumPy computes for them, and the models that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from frontend_meaning import Node

import cortex

RNG = np.random.default_rng(0)
WEIGHTS = {
    "b": RNG.normal(size=3), "q": RNG.normal(size=3), "U": RNG.normal(size=(3, 3)) / 2,
    "emb": RNG.normal(size=(5, 3)), "P": RNG.normal(size=(12, 3, 3)) / 2, "W": RNG.normal(size=(3, 6)) / 2,
}  # fmt: skip


def node(*children: Any, tag: str = "a", word: int = 1, cost: float = 0.5) -> Node:
    return Node(children=list(children), tag=tag, word=word, cost=cost)


def trees() -> list[Node]:
    """Nodes of one to seven children, of two tags, on two levels."""
    leaves = [node(tag="ab"[i % 2], word=i % 5, cost=float(i % 4)) for i in range(9)]
    wide = [node(*leaves[:n], tag="b", word=n % 5, cost=n) for n in (1, 2, 3, 4, 7)]
    return [*wide, node(wide[2], *leaves[3:5], wide[0], cost=2.0), node(wide[1], wide[1], word=3)]


class Numpy:
    """What the functions of Cortex mean."""

    def sum(self, items: Any) -> Any:
        return np.sum(list(items), axis=0)

    def mean(self, items: Any) -> Any:
        return np.mean(list(items), axis=0)

    def max(self, items: Any) -> Any:
        return np.max(list(items), axis=0)

    def softmax(self, items: Any) -> Any:
        powers = np.exp(list(items))
        return list(powers / powers.sum(axis=0))

    def concat(self, items: Any) -> Any:
        return np.concatenate(list(items))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)

    def zeros(self, size: int) -> Any:
        return np.zeros(size)

    tanh = staticmethod(np.tanh)


def average(c: Any, xs: Any) -> Any:
    return c.sum(xs) / len(xs)


class Weights:
    def __init__(self, weights: dict[str, Any]) -> None:
        self.__dict__.update(weights)


def model_of(body: Callable[..., Any]) -> Any:
    @cortex.model
    def f(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.emb[node.word]
        return cortex.tanh(body(cortex, lambda k: f(k, w), node, w))

    return f


def value(body: Callable[..., Any], at: Any) -> Any:
    """What plain Python and NumPy give."""
    if not at.children:
        return WEIGHTS["emb"][at.word]
    for each in at.children:
        each.is_leaf = not each.children
    return np.tanh(body(Numpy(), lambda k: value(body, k), at, Weights(WEIGHTS)))
