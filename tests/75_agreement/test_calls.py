"""The ways to call one compiled model, one after the other, give the same numbers; and those of its latest weights."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex


def leaf(word: int) -> Any:
    return SimpleNamespace(word=word, children=[])


def tree(*words: int) -> Any:
    return SimpleNamespace(word=0, children=[leaf(w) for w in words])


@cortex.model
def bag(node: Any, w: Any) -> Any:
    if not node.children:
        return cortex.tanh(w.E[node.word])
    return cortex.tanh(w.U @ cortex.sum(bag(k, w) for k in node.children))


def weights(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"E": rng.normal(size=(9, 24)).astype(np.float32), "U": rng.normal(size=(24, 24)).astype(np.float32)}


def expected(t: Any, w: dict[str, Any]) -> Any:
    inner = [expected(k, w) for k in t.children]
    return np.tanh(w["U"] @ np.sum(inner, 0)) if inner else np.tanh(w["E"][t.word])


def check(found: Any, trees: list[Any], w: dict[str, Any]) -> None:
    np.testing.assert_allclose(np.asarray(found), [expected(t, w) for t in trees], rtol=1e-4, atol=1e-5)


def test_all_forms_of_a_request_again_and_again() -> None:
    w, trees = weights(1), [tree(1, 2), tree(3), leaf(4), tree(5, 6, 7)]
    fast = cortex.compile(bag, w)
    out = np.empty((4, 24), np.float32)
    for _ in range(3):
        check(fast(trees), trees, w)
        check(fast(tuple(trees)), trees, w)
        check(fast(trees, threads=2), trees, w)
        fast(trees, out=out)
        check(out, trees, w)
        np.testing.assert_allclose(np.asarray(fast(trees[0])), expected(trees[0], w), rtol=1e-4, atol=1e-5)
        assert np.asarray(fast([])).shape == (0, 24)


def test_weights_that_are_updated_between_calls() -> None:
    trees = [tree(1, 2), tree(3)]
    fast = cortex.compile(bag, weights(1))
    for seed in (1, 2, 3):
        fast.update(weights(seed))
        for _ in range(3):
            check(fast(trees), trees, weights(seed))


@cortex.model
def asked(node: Any, w: Any) -> Any:
    x = w.E[node.word] if node.op == "a" else w.U @ w.E[node.word]
    return x + cortex.sum(asked(k, w) for k in node.children)


def test_kinds_that_come_late() -> None:
    w = weights(1)
    first, late = leaf(1), leaf(2)
    first.op, late.op = "a", "b"
    fast = cortex.compile(asked, w, examples=[first])
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(fast([first])), [w["E"][1]], rtol=1e-5)
    for _ in range(3):
        found = np.asarray(fast([first, late]))
        np.testing.assert_allclose(found, [w["E"][1], w["U"] @ w["E"][2]], rtol=1e-4, atol=1e-5)


def test_a_model_that_was_called_is_freed_without_the_collector() -> None:
    fast = cortex.compile(bag, weights(1))
    for _ in range(3):
        fast([tree(1, 2)])
    kept = weakref.ref(fast.in_memory)
    gc.disable()
    try:
        del fast
        assert kept() is None
    finally:
        gc.enable()


def test_states_whose_names_are_taken() -> None:
    @cortex.model
    def cell(node: Any, w: Any) -> Any:
        x = w.E[node.word]
        if not node.children:
            return cortex.state(nodes=x, _run=x, h=x)
        below = cortex.sum(cell(k, w)["nodes"] for k in node.children)
        return cortex.state(nodes=x + below, _run=x, h=below)

    w = weights(0)
    out = cortex.compile(cell, w)(tree(1, 2))
    leaves = w["E"][1] + w["E"][2]
    np.testing.assert_allclose(out["nodes"], w["E"][0] + leaves, rtol=1e-5)
    np.testing.assert_array_equal(out["_run"], w["E"][0])
    np.testing.assert_allclose(out.h, leaves, rtol=1e-5)
    np.testing.assert_array_equal(out.nodes["_run"], w["E"][[0, 1, 2]])
    np.testing.assert_array_equal(out.nodes.h[1:], w["E"][[1, 2]])
    assert [a.shape for a in out] == [(24,)] * 3
    assert out[2] is out.h
    assert set(dir(out)) >= {"h", "nodes"}
    assert repr(out) == "Output(nodes: (24,), _run: (24,), h: (24,))"


def test_children_by_position_do_not_move_up() -> None:
    @cortex.model
    def cell(node: Any, w: Any) -> Any:
        h = w.E[node.word]
        for i, k in enumerate(node.children):
            h = h + (w.U if i == 0 else w.E[1]) * cell(k, w)
        return h

    fast = cortex.compile(cell, {"E": weights(0)["E"], "U": weights(0)["E"][2]})
    for children in ([None, leaf(3)], [leaf(3), None]):  # uncompiled, cell(None, w) is an error as well
        with pytest.raises(cortex.ModelError, match="'NoneType' object has no attribute"):
            fast(SimpleNamespace(word=0, children=children))
    e = weights(0)["E"]
    np.testing.assert_allclose(fast(tree(1, 3)).out, e[0] + e[2] * e[1] + e[1] * e[3], rtol=1e-5)
