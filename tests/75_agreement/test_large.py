"""Large structures: a chain of a million nodes, a star of 100,000 leaves, a deep graph with much sharing."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from extreme_structures import star, with_list_of_children
from processor_time import least
from zoo_structures import DATA

import cortex
from cortex import Forest, zoo
from cortex.structures.aiger import NUM_WORDS, read_aiger
from cortex.structures.tree import Node

Array = Any


@cortex.model
def running_mean(node: Any, w: Any) -> Any:
    """h = 0.5 (x + h of the element before): what a long chain gives is known."""
    x = w.emb[node.word]
    return x if node.prev is None else 0.5 * (x + running_mean(node.prev, w))


class Element:
    __slots__ = ("prev", "word")

    def __init__(self, prev: Element | None, word: int) -> None:
        self.prev = prev
        self.word = word


def test_a_chain_of_a_million_nodes() -> None:
    emb = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    fast = cortex.compile(running_mean, {"emb": emb})
    words = np.random.default_rng(1).integers(0, 10, 1_000_000)
    last: Element | None = None
    for word in words.tolist():
        last = Element(last, word)
    out = fast(last)
    expected = _running_mean(emb, words)
    np.testing.assert_allclose(out.out, expected[-1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(out.nodes.out, expected[::-1], rtol=0, atol=1e-6)
    while last is not None:  # or freeing the chain would recurse
        last = last.prev


def _running_mean(emb: Array, words: Array) -> Array:
    h = emb[words[0]].astype(np.float64)
    rows = [h]
    for word in words[1:]:
        h = 0.5 * (emb[word] + h)
        rows.append(h)
    return np.stack(rows)


def test_a_zoo_model_on_a_chain_of_a_million() -> None:
    entry = zoo.load("gru")
    fast = cortex.compile(entry.model, w := entry.weights(4, 10))
    n = 1_000_000
    words = np.random.default_rng(2).integers(0, 10, n)
    out = fast(Forest.from_slots({"prev": np.arange(-1, n - 1)}, fields={"word": words}, roots=[n - 1]))
    assert np.isfinite(out.nodes.h).all()
    before = np.array(out.nodes.h)
    for i in (1, 17, n // 2, n - 1):  # each step from the one before, in float64
        x, y = w["Wx"] @ w["emb"][words[i]] + w["bx"], w["Wh"] @ before[i - 1] + w["bh"]
        r, z = (1 / (1 + np.exp(-(x[k : k + 4] + y[k : k + 4]))) for k in (0, 4))
        h = (1 - z) * np.tanh(x[8:] + r * y[8:]) + z * before[i - 1]
        np.testing.assert_allclose(before[i], h, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["tree_lstm", "dag_rnn"])
def test_a_star_of_100_000_leaves(name: str) -> None:
    entry = zoo.load(name)
    weights = {k: v if k == "emb" else v * np.float32(1e-4) for k, v in entry.weights(7, 20).items()}
    fast = cortex.compile(entry.model, weights)
    root = star(Random(0), 100_000, 20)
    exact = fast.interpret(root)
    out = fast(root)
    # A sum of n numbers in order, in float32: rounding grows with n.
    np.testing.assert_allclose(out.h, exact["h"][0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(out.nodes.h[1:], exact["h"][1:], rtol=1.3e-6, atol=1e-5)


def _deep_graph() -> Forest:
    """hyp.aig (214,335 nodes, depth 24,801) where the data is there; else as deep a graph of random operands."""
    path = DATA / "aig" / "hyp.aig"
    if path.exists():
        return with_list_of_children(read_aiger(path))
    rng = np.random.default_rng(3)
    n = 214_335
    first = np.arange(n) - 1 - rng.integers(0, 8, n)
    second = np.arange(n) - 1 - rng.integers(0, 1000, n)
    gates = np.flatnonzero((first >= 0) & (second >= 0))
    pointer = np.zeros(n + 1, np.int64)
    pointer[gates + 1] = 2
    index = np.stack([first[gates], second[gates]], axis=1).reshape(-1)
    words = rng.integers(0, NUM_WORDS, n)
    return Forest.from_children(np.cumsum(pointer), index, fields={"word": words}, roots=[n - 1])


def test_a_deep_graph() -> None:
    entry = zoo.load("dag_rnn")
    weights = entry.weights(5, NUM_WORDS)
    fast = cortex.compile(entry.model, weights)
    forest = _deep_graph()
    out = np.array(fast(forest).nodes.h)
    # Every node from the float32 states of its children: exact up to one step's rounding, however deep the graph.
    pointer, index = forest.lists["children"]
    parents = np.repeat(np.arange(forest.num_nodes), np.diff(pointer))
    reached = _reached(forest)
    sums = np.zeros((forest.num_nodes, 5))
    rows = np.full(forest.num_nodes, -1)
    rows[reached] = np.arange(len(reached)) if len(out) == len(reached) else reached
    edges = rows[parents] >= 0
    np.add.at(sums, parents[edges], out[rows[index[edges]]].astype(np.float64))
    words = np.asarray(forest.fields["word"])
    expected = np.tanh(sums @ weights["U"].T + weights["emb"][words] @ weights["W"].T + weights["b"])
    np.testing.assert_allclose(out[rows[reached]], expected[reached], rtol=1.3e-6, atol=1e-5)


def _reached(forest: Forest) -> Array:
    """The nodes below the roots, by index."""
    pointer, index = forest.lists["children"]
    seen = np.zeros(forest.num_nodes, bool)
    seen[forest.roots] = True
    for i in reversed(range(forest.num_nodes)):  # operands of a gate have lower indices
        if seen[i]:
            seen[index[pointer[i] : pointer[i + 1]]] = True
    return np.flatnonzero(seen)


def test_a_deep_graph_is_linearized_quickly() -> None:
    entry = zoo.load("dag_rnn")
    fast = cortex.compile(entry.model, entry.weights(5, NUM_WORDS))
    forest = _deep_graph()
    assert least(lambda: fast.linearize(forest)) < 0.5  # 20 ms; to look at all nodes at each depth would take seconds


def test_a_deep_chain_of_objects_with_children() -> None:
    """Depth is bounded by memory, not by Python's recursion limit, also for lists of children."""
    entry = zoo.load("dag_rnn")
    weights = entry.weights(3, 10)
    fast = cortex.compile(entry.model, weights)
    top = Node((), 1)
    nodes = [top]
    for i in range(200_000):
        top = Node((top,), i % 10)
        nodes.append(top)
    out = np.array(fast(top).nodes.h)[::-1]
    words = [node.word for node in nodes]
    inputs = weights["emb"][words[1:]] @ weights["W"].T + weights["b"]
    np.testing.assert_allclose(out[1:], np.tanh(out[:-1] @ weights["U"].T + inputs), rtol=1.3e-6, atol=1e-5)
    for node in nodes:  # or freeing the chain would recurse
        node.children = ()
