"""Rows of tables by an integer field times and plus constants: the same rows as in NumPy, and the same range."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.frontend.trace import Trace

TABLE = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
WEIGHTS = {"emb": TABLE, "U": np.eye(3, dtype=np.float32) / 2}

INDICES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "plus": (lambda n: n + 1, 9),
    "before": (lambda n: 3 + n, 7),
    "times": (lambda n: n * 2, 5),
    "both": (lambda n: 3 * n + 2, 3),
    "of_sum": (lambda n: 2 * (n + 1) - 1, 5),
    "none": (lambda n: n - 1 + 1, 10),
    "twice_negated": (lambda n: 4 - (-n), 6),
}
"""An index computed from a field, and how many values of it are in the range."""


def tree(word: int, depth: int = 2) -> Any:
    return SimpleNamespace(word=word, children=[tree(word, depth - 1) for _ in range(depth)])


@pytest.mark.parametrize("embedding", [False, True])
@pytest.mark.parametrize("name", INDICES)
def test_rows(name: str, embedding: bool) -> None:
    index, count = INDICES[name]

    @cortex.model
    def f(node: Any, w: Any) -> Any:
        row = cortex.embedding(w.emb, index(node.word)) if embedding else w.emb[index(node.word)]
        return row + w.U @ cortex.sum(f(k, w) for k in node.children)

    def value(node: Any) -> Any:
        return TABLE[index(node.word)] + sum((value(k) for k in node.children), np.zeros(3)) / 2

    assert len(Trace(f, WEIGHTS).model().kinds) == 1  # which needs no structure
    fast = cortex.compile(f, WEIGHTS)
    trees = [tree(word) for word in range(count)]
    np.testing.assert_allclose(fast(trees).out, [value(t) for t in trees], rtol=1e-5, atol=1e-6)
    for word in (count, -1):
        with pytest.raises(cortex.StructureError, match="word"):
            fast(tree(word))


def test_smallest_range_counts() -> None:
    @cortex.model
    def f(node: Any, w: Any) -> Any:
        return w.emb[node.word] + w.emb[node.word + 2] + cortex.sum(w.emb[k.word + 1] for k in node.children)

    fast = cortex.compile(f, WEIGHTS)
    leaf = SimpleNamespace(word=3, children=[])
    np.testing.assert_allclose(fast(leaf).out, TABLE[3] + TABLE[5], rtol=1e-6)
    root = SimpleNamespace(word=7, children=[leaf])
    np.testing.assert_allclose(fast(root).out, TABLE[7] + TABLE[9] + TABLE[4], rtol=1e-6)
    with pytest.raises(cortex.StructureError, match="word"):
        fast(SimpleNamespace(word=8, children=[]))


def test_numbers_are_computed_as_they_are_written() -> None:
    """Integers and floats that are no index: `(x + 1) * 3` is not `3 * x + 3` in floats."""

    @cortex.model
    def f(node: Any, w: Any) -> Any:
        s = cortex.sum(f(k, w) for k in node.children)
        return w.emb[0] * ((node.x + 1) * 3) + (2 - node.k) * w.emb[1] - w.emb[node.k * 2] + s

    x = 0.1
    node = SimpleNamespace(x=x, k=2, children=[])
    times = (np.float32(x) + np.float32(1)) * np.float32(3)
    np.testing.assert_allclose(cortex.compile(f, WEIGHTS)(node).out, TABLE[0] * times - TABLE[4], rtol=1e-6)
