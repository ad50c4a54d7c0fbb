"""As the message about arguments from above says: a model that recurses upwards and one that reads what it gave."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import cortex

WEIGHTS = {"U": np.eye(3) / 2, "b": np.arange(3.0)}


@cortex.model
def down(node: Any, w: Any) -> Any:
    return w.b if node.above is None else cortex.tanh(w.U @ down(node.above, w))


@cortex.model
def up(node: Any, w: Any) -> Any:
    return cortex.tanh(node.context + cortex.sum(up(k, w) for k in node.children))


def value(node: Any, context: Any) -> Any:
    below = [value(k, np.tanh(context / 2)) for k in node.children]
    return np.tanh(context + sum(below, np.zeros(3)))


def test_two_passes() -> None:
    leaf, other = (SimpleNamespace(children=[]) for _ in range(2))
    inner = SimpleNamespace(children=[leaf])
    root = SimpleNamespace(children=[inner, other], parent=None)
    inner.parent = other.parent = root
    leaf.parent = inner
    nodes = [root, inner, leaf, other]
    contexts = cortex.compile(down, WEIGHTS, fields={"above": "parent"})(nodes).out
    for node, context in zip(nodes, contexts, strict=True):
        node.context = context
    np.testing.assert_allclose(cortex.compile(up, WEIGHTS)(root).out, value(root, WEIGHTS["b"]), rtol=1e-5)
