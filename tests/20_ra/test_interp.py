"""The meaning of models, against the recursion written in NumPy node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ra_models import child_sum, f32, linearize, random_nodes, random_params, tree_fc, tree_lstm, with_kind

from cortex.errors import InternalError
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.interp import derived, run
from cortex.recursion.hoist import Hoist


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tree_lstm(dtype: Any) -> None:
    m, rng = tree_lstm(), np.random.default_rng(1)
    nodes, w = random_nodes(rng, 25), random_params(m, rng)

    def cell(i: int) -> tuple[Any, Any]:
        kids = [cell(k) for k in nodes[i]["children"]]
        product = w["U"] @ sum(h for h, _ in kids) if kids else w["W"] @ w["emb"][nodes[i]["word"]]
        i_, o, u = np.split(product + w["b"], 3)
        c = sigmoid(i_) * np.tanh(u) + sum(sigmoid(w["Uf"] @ h + w["bf"]) * c for h, c in kids)
        return sigmoid(o) * np.tanh(c), c

    form = linearize(m, nodes)
    states = run(m, w, form, dtype)
    order = form.arrays["order"]
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    for i in range(len(nodes)):
        h, c = cell(i)
        np.testing.assert_allclose(states["h"][order[i]], h, atol=tolerance)
        np.testing.assert_allclose(states["c"][order[i]], c, atol=tolerance)
    assert states["h"].dtype == dtype


def test_slots() -> None:
    m, rng = tree_fc(), np.random.default_rng(2)
    nodes = [{"left": 1, "right": 2}, {"word": 3}, {"left": 3, "right": 4}, {"word": 1}, {"word": 6}]
    w, form = random_params(m, rng), linearize(m, nodes)

    def cell(i: int) -> Any:
        if "word" in nodes[i]:
            return w["emb"][nodes[i]["word"]]
        return np.tanh(w["W"] @ np.concatenate([cell(nodes[i]["left"]), cell(nodes[i]["right"])]) + w["b"])

    np.testing.assert_allclose(run(m, w, form)["h"][form.arrays["order"][0]], cell(0), atol=1e-14)


def one_op(body: Any, nodes: list[dict[str, Any]], shape: tuple[int, ...] = ()) -> Any:
    """The state, for each node, of a model whose one kind is `body`."""
    fields = (ir.FieldDecl("x", f32(3)),)
    m = ir.Model(
        "one", (ir.ParamDecl("A", f32(2, 3)),), fields, (), ("children",), (ir.StateDecl("h", f32(*shape)),), ()
    )
    m = with_kind(m, "any", (), lambda b: [body(b)])
    form = linearize(m, nodes)
    return run(m, {"A": np.arange(6.0).reshape(2, 3)}, form)["h"][form.arrays["order"]]


STAR = [{"children": [1, 2, 3], "x": [1.0, -2, 3]}] + [{"children": [], "x": [-i, i, -2.0]} for i in (1.0, 2.0, 3.0)]


@pytest.mark.parametrize(("fn", "expected"), [("add", [-6, 6, -6]), ("max", [-1, 3, -2]), ("min", [-3, 1, -2])])
def test_over_children_is_zero_over_none(fn: Any, expected: list[float]) -> None:
    def body(b: Builder) -> str:
        return b.add(ir.OverChildren(fn, b.add(ir.Field("x", (ir.Each("children"),))), "children"))

    np.testing.assert_array_equal(one_op(body, STAR, (3,)), [expected, [0] * 3, [0] * 3, [0] * 3])


def test_arity() -> None:
    np.testing.assert_array_equal(one_op(lambda b: b.add(ir.Arity("children")), STAR), [3, 0, 0, 0])


def test_values_of_different_rank_broadcast_per_node() -> None:
    def body(b: Builder) -> str:
        return b.add(ir.Binary("mul", b.add(ir.Param("A")), b.add(ir.Field("x"))))

    expected = [np.arange(6.0).reshape(2, 3) * np.array(n["x"]) for n in STAR]
    np.testing.assert_array_equal(one_op(body, STAR, (2, 3)), expected)


def test_a_per_edge_value_reads_the_value_of_its_node() -> None:
    def body(b: Builder) -> str:
        product = b.add(ir.Binary("mul", b.add(ir.Field("x", (ir.Each("children"),))), b.add(ir.Field("x"))))
        return b.add(ir.OverChildren("add", product, "children"))

    np.testing.assert_array_equal(one_op(body, STAR, (3,))[0], [-6, -12, -18])


@pytest.mark.parametrize("spec", ["ab,b->a", "ab,b->ba", "ab,b->", "ab,c->cab", "ab,b->b", "ab,c->c"])
def test_contractions_are_einsum(spec: str) -> None:
    out = spec.split("->")[1]
    extent = {"a": 2, "b": 3, "c": 3}

    def body(b: Builder) -> str:
        return b.add(ir.Contract(spec, b.add(ir.Param("A")), b.add(ir.Field("x"))))

    expected = [np.einsum(spec, np.arange(6.0).reshape(2, 3), np.array(n["x"])) for n in STAR]
    np.testing.assert_allclose(one_op(body, STAR, tuple(extent[c] for c in out)), expected, rtol=1e-14)


def test_sigmoid_does_not_overflow() -> None:
    def body(b: Builder) -> str:
        return b.add(ir.Unary("sigmoid", b.add(ir.Field("x"))))

    got = one_op(body, [{"children": [], "x": [-1000.0, 0.0, 1000.0]}], (3,))
    np.testing.assert_array_equal(got, [[0.0, 0.5, 1.0]])


def test_a_missing_child_is_an_internal_error() -> None:
    m = tree_fc()
    form = linearize(m, [{"left": 1}, {"word": 0}])
    with pytest.raises(InternalError, match="no such child"):
        run(m, random_params(m, np.random.default_rng(0)), form)


def test_derived_parameters() -> None:
    m = Hoist().apply(child_sum())
    params = random_params(m, np.random.default_rng(3))
    every = derived(m, params)
    assert set(every) == {p.name for p in m.params}
    np.testing.assert_allclose(every["derived_0"], params["b"] + params["d"])
