"""Models in which every node calls the model: the states' shapes follow from the weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.frontend.trace import Trace

W = np.eye(7, dtype=np.float32)


@cortex.model
def closed_over(node: Any) -> Any:
    return cortex.tanh(W @ cortex.sum(closed_over(k) for k in node.children))


@cortex.model
def one_tuple(node: Any, w: Any) -> Any:
    return (cortex.tanh(w.W @ cortex.sum(one_tuple(k, w)[0] for k in node.children)),)


@pytest.mark.parametrize(("model", "weights"), [(closed_over, None), (one_tuple, {"W": W})])
def test_shapes_come_from_arrays(model: Any, weights: Any) -> None:
    (state,) = Trace(model, weights).model().states
    assert state.type.shape == (7,)


# Hidden size 1 broadcasts against everything, so a guess from the weights alone would be ambiguous.
NARROW = {"emb": np.full((10, 1), 0.5), "b": np.ones(1), "U": np.eye(1)}


@cortex.model
def none_last(node: Any, w: Any) -> Any:
    if node.right is not None:
        return w.b * (none_last(node.left, w) + none_last(node.right, w))
    return w.emb[node.word]


@cortex.model
def none_after_a_call(node: Any, w: Any) -> Any:
    right = node.right
    left = w.b if node.left is None else none_after_a_call(node.left, w)
    if right is None:
        return w.emb[node.word] * left
    return left * none_after_a_call(right, w) + w.emb[node.word]


@cortex.model
def none_beside_a_tag(node: Any, w: Any) -> Any:
    op = node.op
    if node.right is None:
        return w.emb[node.word]
    left = none_beside_a_tag(node.left, w)
    return left * none_beside_a_tag(node.right, w) if op == "mul" else left + none_beside_a_tag(node.right, w)


@pytest.mark.parametrize(("model", "value"), [(none_last, 1.0), (none_after_a_call, 0.75), (none_beside_a_tag, 0.25)])
def test_a_missing_child_is_the_base_case(model: Any, value: float) -> None:
    leaf = SimpleNamespace(left=None, right=None, word=1, op="leaf")
    root = SimpleNamespace(left=leaf, right=leaf, word=2, op="mul")
    trace = Trace(model, NARROW)
    assert [state.type.shape for state in trace.model().states] == [(1,)]
    np.testing.assert_allclose(cortex.compile(model, NARROW)(root).out, [value])


@cortex.model
def fixed_by_one_kind(node: Any, w: Any) -> Any:
    if node.op == "add":
        return fixed_by_one_kind(node.left, w) + fixed_by_one_kind(node.right, w)
    return cortex.tanh(w.W @ fixed_by_one_kind(node.arg, w))


def test_all_kinds_together_fix_the_shape() -> None:
    weights = {"W": W, "unread": np.ones((3, 5))}
    (state,) = Trace(fixed_by_one_kind, weights).model().states
    assert state.type.shape == (7,)


@cortex.model
def sizes(node: Any, w: Any) -> Any:
    return cortex.state(
        h=cortex.tanh(w.W @ cortex.sum(sizes(k, w).h for k in node.children)),
        size=1 + cortex.sum(sizes(k, w).size for k in node.children),
    )


def test_what_is_a_number_at_the_leaves_is_one() -> None:
    inner = SimpleNamespace(children=[SimpleNamespace(children=[])])
    root = SimpleNamespace(children=[SimpleNamespace(children=[]), inner])
    fast = cortex.compile(sizes, {"W": W})
    assert fast(root).h.shape == (7,)
    np.testing.assert_array_equal(fast(root).size, 4.0)
