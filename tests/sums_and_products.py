"""A model of three kinds that need different states of their children, and random structures for it."""

from __future__ import annotations

from typing import Any

import numpy as np

import cortex
from cortex.runtime.forest import Forest

WORDS, SIZE = 9, 19


@cortex.model
def cell(node: Any, w: Any) -> Any:
    """Leaves, sums and products, told by a string."""
    if node.is_leaf:
        t = w.W @ w.emb[node.word] + w.b
        return cortex.state(h=cortex.tanh(t), c=cortex.sigmoid(t) * w.b)
    total = cortex.sum(cell(k, w).h for k in node.children)
    if node.op == "sum":
        return cortex.state(h=cortex.tanh(w.U @ total + w.W @ w.emb[node.word]), c=total)
    kept = cortex.sum(cortex.sigmoid(w.V @ cell(k, w).h + w.b) * cell(k, w).c for k in node.children)
    return cortex.state(h=cortex.tanh(w.V @ total) + kept, c=kept)


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"W": (SIZE, SIZE), "U": (SIZE, SIZE), "V": (SIZE, SIZE), "b": (SIZE,), "emb": (WORDS, SIZE)}
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def cell_forest(seed: int, count: int, dag: bool) -> Forest:
    """A random tree, or a graph in which nodes are shared."""
    rng = np.random.default_rng(seed)
    below: list[list[int]] = [[] for _ in range(count)]
    for v in range(1, count):
        for parent in rng.integers(max(0, v - 6), v, 1 + dag * int(rng.integers(3))).tolist():
            below[parent].append(v)
    fields = {"word": rng.integers(0, WORDS, count), "op": [("sum", "product")[i] for i in rng.integers(0, 2, count)]}
    return Forest.from_children(np.cumsum([0, *map(len, below)]), [c for each in below for c in each], fields)
