"""Models called outside of tracing: the function itself, on real nodes and NumPy arrays."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node, weights
from numpy.testing import assert_allclose

import cortex
from cortex.zoo import ENTRIES

W = weights(3, emb=(9, 4), U=(4, 4), b=(4,))


@cortex.model
def pairs(node: Any, w: Any) -> Any:
    if node.left is None:
        return w.emb[node.word]
    return cortex.tanh(w.U @ pairs(node.left, w) + pairs(node.right, w))


@cortex.model
def gated(node: Any, w: Any) -> Any:
    """Reduces over no children at leaves."""
    h = cortex.sum(gated(k, w).h for k in node.children)
    c = cortex.max(gated(k, w).c for k in node.children[1:])
    return cortex.state(
        h=cortex.tanh(w.U @ h + w.emb[node.word]), c=c + cortex.mean(gated(k, w).h for k in node.children)
    )


@cortex.model
def attends(node: Any, w: Any) -> Any:
    if node.is_leaf:
        return w.emb[node.word], w.b
    kids = node.children
    a = cortex.softmax(w.b @ attends(k, w)[0] for k in kids)
    return cortex.sum(a_k * attends(k, w)[0] for a_k, k in zip(a, kids, strict=True)), w.b * len(kids)


def leaf(word: int) -> Node:
    return Node(word=word, children=[], left=None, right=None)


def inner(*children: Node) -> Node:
    return Node(word=1, children=list(children), left=children[0], right=children[-1])


TREE = inner(leaf(2), inner(leaf(3), leaf(4), leaf(5)), leaf(6))


@pytest.mark.parametrize("name", ENTRIES)
def test_models_of_the_zoo(name: str) -> None:
    entry = ENTRIES[name]
    values = entry.weights(6, 50)
    (structure,) = entry.structures(Random(3), 1, 50)
    found = entry.model(structure, values)
    reference = entry.reference(values)(structure)
    for state in entry.states:
        actual = getattr(found, state) if hasattr(found, state) else found
        assert actual.dtype == np.float32
        assert_allclose(actual, getattr(reference, state).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", [pairs, gated, attends], ids=lambda model: model.name)
def test_same_as_compiled(model: Any) -> None:
    found, fast = model(TREE, W), cortex.compile(model, W)(TREE)
    states = list(found) if len(fast) > 1 else [found]
    for actual, expected in zip(states, fast, strict=True):
        assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_nodes_are_the_users_own() -> None:
    seen: list[Any] = []

    @cortex.model
    def watched(node: Any, w: Any) -> Any:
        seen.append(node)
        return w.b + sum(watched(k, w) for k in node.children)

    watched(TREE, W)
    assert seen[0] is TREE and seen[1] is TREE.children[0]


def test_a_shared_node_is_computed_once() -> None:
    calls: list[Any] = []

    @cortex.model
    def doubled(node: Any, w: Any) -> Any:
        calls.append(node)
        return w.b if node.left is None else doubled(node.left, w) + doubled(node.right, w)

    dag = leaf(1)
    for _ in range(40):
        dag = inner(dag, dag)
    assert_allclose(doubled(dag, W), W["b"] * 2.0**40)
    assert len(calls) == 41


def test_weights_are_given_as_to_compile(tmp_path: Path) -> None:
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.numpy")
    np.savez(tmp_path / "w.npz", **W)
    safetensors.save_file(W, tmp_path / "w.safetensors")
    want = pairs(TREE, W)
    for given in (
        tmp_path / "w.npz",
        str(tmp_path / "w.safetensors"),
        {name: torch.from_numpy(value) for name, value in W.items()},
        {name: value.astype(np.float64) for name, value in W.items()},
    ):
        assert pairs(TREE, given).tobytes() == want.tobytes()


def test_groups_of_weights_and_constants() -> None:
    @cortex.model
    def layers(node: Any, w: Any, scale: float = 2.0) -> Any:
        x = scale * w.layers[0].b + w["layers"]["1"].b
        return x if node.left is None else x + layers(node.left)

    given = {"layers.0.b": np.ones(3), "layers.1.b": np.full(3, 10.0)}
    assert layers(inner(leaf(1)), given).tolist() == [24.0] * 3
    assert layers(inner(leaf(1)), given, scale=0.0).tolist() == [22.0] * 3  # the inner call does not say, as in Python


def test_children_and_fields_are_what_one_says() -> None:
    @cortex.model
    def summed(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.b * node.amount
        return cortex.sum(summed(k, w) for k in node.children)

    tree = Node(kids=[Node(kids=[], n=2.0), Node(kids=[Node(kids=[], n=3.0)])])
    options: Any = {"children": "kids", "fields": {"amount": lambda node: node.n * 10}}
    found = summed.uncompiled(tree, W, **options)
    assert_allclose(found, W["b"] * 50)
    assert_allclose(cortex.compile(summed, W, **options)(tree).out, found)


def test_functions_compute_anywhere() -> None:
    assert cortex.sigmoid(0.0) == 0.5
    assert cortex.concat([np.ones(2), cortex.zeros(1)]).tolist() == [1, 1, 0]
    record = cortex.state(h=np.ones(2), c=0)
    assert record.h.tolist() == [1, 1] and record["c"] == 0 and len(list(record)) == 2
    assert not hasattr(record, "x")


def test_integers_of_nodes_are_exact() -> None:
    @cortex.model
    def difference(node: Any, w: Any) -> Any:
        return w.b * (node.end - node.start)

    assert_allclose(difference(Node(end=2**60 + 3, start=2**60), {"b": np.ones(2)}), 3)


@cortex.model
def augmented(node: Any, w: Any) -> Any:
    """What a call returns is the caller's own, and may be changed in place; as in NumPy, `z` and `y` are one array."""
    b = w.b * 1
    b += 1
    x = node.x * 1
    x *= 2
    for k in node.children:
        h = augmented(k, w)
        h += b
        x -= h
    y = cortex.tanh(x)
    z = y
    z /= 2
    return x + y + w.b


def test_augmented_assignments_change_arrays_of_the_call_alone() -> None:
    def made(x: float, *children: Node) -> Node:
        return Node(x=np.full(4, x), children=list(children))

    shared = made(0.25)
    tree = made(1.0, shared, made(2.0, shared))
    found = augmented.uncompiled(tree, W, children="children")
    assert shared.x.tolist() == [0.25] * 4
    fast = cortex.compile(augmented, W, examples=[tree])
    assert_allclose(found, fast(tree).out, rtol=1e-6, atol=1e-6)
    assert type(found) is np.ndarray
    assert_allclose(found, augmented(tree, W), rtol=1e-6, atol=1e-6)
    assert_allclose(augmented(shared, W), 0.5 + np.tanh(0.5) / 2 + W["b"], rtol=1e-6)
