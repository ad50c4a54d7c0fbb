"""Sums over children of vectors of weights that a number of the child scales: no matrix, and nothing to pack."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

WEIGHTS = {"x": np.linspace(-1, 1, 20, dtype=np.float32), "U": np.eye(20, dtype=np.float32)}


def node(t: float, *children: Any) -> Any:
    return SimpleNamespace(t=t, children=list(children))


TREES = [node(2.0, node(1.5), node(3.0)), node(1.0, node(2.0, node(4.0), node(0.5), node(0.25)))]


@cortex.model
def scaled(n: Any, w: Any) -> Any:
    return w.x if n.is_leaf else cortex.sum(w.x * k.t for k in n.children)


@cortex.model
def by_difference(n: Any, w: Any) -> Any:
    return w.x if n.is_leaf else cortex.sum(w.x * (k.t - n.t) / 60 for k in n.children)


@cortex.model
def with_states(n: Any, w: Any) -> Any:
    return w.x if n.is_leaf else cortex.sum([w.x * k.t + with_states(k, w) for k in n.children])


@cortex.model
def with_products(n: Any, w: Any) -> Any:
    return w.x if n.is_leaf else cortex.sum(w.U @ with_products(k, w) * k.t + w.x * k.t for k in n.children)


@pytest.mark.parametrize("model", [scaled, by_difference, with_states, with_products], ids=lambda m: m.name)
def test_as_uncompiled(model: Any) -> None:
    fast = cortex.compile(model, WEIGHTS, examples=TREES)
    for tree in TREES:
        want = model.uncompiled(tree, WEIGHTS, children="children")
        np.testing.assert_allclose(fast(tree)[0], np.asarray(want), rtol=1e-5, atol=1e-6)
