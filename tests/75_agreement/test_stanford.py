"""All Stanford trees through one compiled TreeLSTM, and results that do not depend on the batch."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from breadth import pairs  # noqa: E402
from zoo_structures import batch, stanford  # noqa: E402

import cortex  # noqa: E402
from cortex import zoo  # noqa: E402
from cortex.structures.tree import with_children  # noqa: E402

VOCAB = 1000
HIDDEN = 16


@cache
def trees() -> list[Any]:
    """All 11,855 trees."""
    return [with_children(tree) for part in ("train", "dev", "test") for tree in stanford(part, VOCAB)]


@cache
def tree_lstm() -> tuple[Any, Any]:
    entry = zoo.load("tree_lstm")
    weights = entry.weights(HIDDEN, VOCAB)
    return cortex.compile(entry.model, weights), entry.reference(weights)


def test_all_trees_without_compiling_again() -> None:
    fast, reference = tree_lstm()
    everything = trees()
    assert len(everything) == 11_855
    fast(everything[:1])
    compilations = fast.compilations
    rows = np.concatenate([np.array(fast(everything[i : i + 100]).h) for i in range(0, len(everything), 100)])
    assert fast.compilations == compilations
    assert rows.shape == (11_855, HIDDEN) and np.isfinite(rows).all()
    for i in Random(0).sample(range(len(everything)), 60):
        torch.testing.assert_close(torch.from_numpy(rows[i]), reference(everything[i]).h)


def test_all_trees_in_one_call() -> None:
    fast, _ = tree_lstm()
    everything = trees()
    together = np.array(fast(everything).h)
    for i in Random(1).sample(range(len(everything)), 200):
        assert (together[i] == np.array(fast(everything[i]).h)).all()


@pytest.mark.parametrize(("name", "hidden"), pairs(zoo.ENTRIES, [7, 64]))
def test_same_tree_same_bits(name: str, hidden: int) -> None:
    """Alone, in a batch of 10, and in a shuffled batch of 1,000 (200 where a node has a matrix)."""
    entry = zoo.load(name)
    fast = cortex.compile(entry.model, entry.weights(hidden, 50))
    many = 200 if name in ("mv_rnn", "rntn", "tree_fc") else 1000
    roots = batch(name, "stanford", many - 30) + batch(name, "chains", 15) + batch(name, "stars", 15)
    order = list(range(len(roots)))
    Random(2).shuffle(order)
    alone = [fast(root) for root in roots[:10] + roots[-20:]]
    ten, shuffled = fast(roots[:10]), fast([roots[i] for i in order])
    for state in entry.states:
        in_ten = np.array(ten[state])
        in_many = np.empty((len(roots), *in_ten.shape[1:]), np.float32)
        in_many[order] = np.array(shuffled[state])
        by_itself = np.stack([np.array(out[state]) for out in alone])
        assert (by_itself[:10] == in_ten).all()
        assert (by_itself == np.concatenate([in_many[:10], in_many[-20:]])).all()
