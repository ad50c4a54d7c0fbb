"""Models that take their children one by one, merged and not, and random structures for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from frontend_meaning import Node, checked, evaluate, weights

import cortex
from cortex.frontend.trace import Trace
from cortex.ra.ir import Item, Kind, Length

H = 4
WEIGHTS = weights(E=(7, H), U=(H, H), V=(2 * H, H), b=(H,), q=(H,))

Combine = Callable[[Any, Any, list[Any]], Any]
"""From a node, the weights and the children's states to the node's."""


def model_of(combine: Combine) -> Any:
    """A model whose inner nodes take their children one by one."""

    @cortex.model
    def looped(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return cortex.tanh(w.E[node.word])
        states = []
        for child in node.children:
            states.append(looped(child, w))
        return combine(node, w, states)

    return looped


def tree(rng: Random, depth: int, most: int = 6) -> Node:
    """A random tree of which every inner node has 1 to `most` children."""
    below = [tree(rng, depth - rng.randint(1, 2), most) for _ in range(rng.randint(1, most))] if depth > 0 else []
    x = np.array([rng.uniform(-1, 1) for _ in range(H)], np.float32)
    return Node(word=rng.randrange(7), x=x, op=rng.choice("pq"), children=below)


def star(arity: int) -> Node:
    """A node with so many leaves."""
    leaves = [Node(word=i % 7, x=np.full(H, 0.1 * i, np.float32), op="p", children=[]) for i in range(arity)]
    return Node(word=1, x=np.ones(H, np.float32), op="p", children=leaves)


@contextmanager
def one_kind_per_arity() -> Iterator[None]:
    """Trace without merging."""
    with (
        patch("cortex.frontend.trace.widen", return_value=False),
        patch("cortex.frontend.explore.widen", return_value=False),
    ):
        yield


def unmerged(model: Any, root: Any, given: Any = WEIGHTS) -> dict[str, Any]:
    """The states of `root`, of a trace for each number of children."""
    with one_kind_per_arity():
        return evaluate(Trace(model, given), root)


def is_per_arity(kind: Kind) -> bool:
    """Is the kind for one number of children, at least one?"""
    return any(isinstance(fact.test, Length) and fact.answer for fact in kind.guard) or any(
        isinstance(hop, Item) for let in kind.lets for hop in getattr(let.op, "path", ())
    )


def assert_same(trace: Trace, model: Any, root: Any, given: Any = WEIGHTS, rtol: float = 1e-6) -> None:
    """The states of `root` must not depend on merging."""
    expected = unmerged(model, root, given)
    found = evaluate(trace, root)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=1e-9)


__all__ = [
    "WEIGHTS", "Combine", "H", "Node", "Trace", "assert_same", "checked", "evaluate", "is_per_arity", "model_of",
    "one_kind_per_arity", "star", "tree", "unmerged", "weights",
]  # fmt: skip
