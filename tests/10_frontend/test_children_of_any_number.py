"""Kinds of any number of children: which models have them, leaves without a branch, numbers met later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from children_meaning import WEIGHTS, average, model_of, node, trees, value
from frontend_meaning import Node, evaluate

import cortex
from cortex.frontend.trace import Trace

# The same expression for every child stays one kind, whatever the number of children.


def kept_sum(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for k in n.children) + c.sum([w.U @ f(k) for k in n.children])


def kept_mean_and_extremes(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return c.mean(hs) + c.max(hs) * c.sum(w.b for _ in n.children)


def kept_attention(c: Any, f: Any, n: Any, w: Any) -> Any:
    a = c.softmax(w.q @ f(k) for k in n.children)
    return c.sum(a_k * f(k) for a_k, k in zip(a, n.children, strict=True))


def kept_fields(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(c.where((k.cost > 1) & (k.cost < 3), f(k) * k.cost, w.emb[k.word]) for k in n.children)


def kept_helper(c: Any, f: Any, n: Any, w: Any) -> Any:
    return average(c, [f(k) for k in n.children]) + sum(f(k) for k in n.children)


KEPT = [kept_sum, kept_mean_and_extremes, kept_attention, kept_fields, kept_helper]


@pytest.mark.parametrize("body", KEPT, ids=lambda body: body.__name__)
def test_one_kind_of_any_arity(body: Callable[..., Any]) -> None:
    trace = Trace(model_of(body), WEIGHTS)
    trace.explore()
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], value(body, tree), rtol=1e-5, atol=1e-6)
    assert [kind.name for kind in trace.model().kinds] == ["leaf", "inner"]


# No leaf has a branch of its own: a reduction over no children is 0, and a base case may be said in other words.


def test_an_empty_list_is_the_base_case() -> None:
    @cortex.model
    def largest(node: Any, w: Any) -> Any:
        hs = [largest(k, w) for k in node.children]
        if not hs:
            return w.emb[node.word]
        return cortex.max(hs) * len(hs)

    def expected(at: Node) -> Any:
        hs = [expected(k) for k in at.children]
        return np.max(hs, axis=0) * len(hs) if hs else WEIGHTS["emb"][at.word]

    trace = Trace(largest, WEIGHTS)
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], expected(tree), rtol=1e-6)


@pytest.mark.parametrize("collect", [list, tuple, iter])
def test_a_collection_of_no_children_is_reduced_to_zero(collect: Callable[..., Any]) -> None:
    @cortex.model
    def total(node: Any, w: Any) -> Any:
        return cortex.tanh(w.emb[node.word] + w.U @ cortex.sum(collect([total(k, w) for k in node.children])))

    def expected(at: Node) -> Any:
        below = sum((expected(k) for k in at.children), np.zeros(3))
        return np.tanh(WEIGHTS["emb"][at.word] + WEIGHTS["U"] @ below)

    trace = Trace(total, WEIGHTS)
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], expected(tree), rtol=1e-5)
    assert len(trace.model().kinds) == 1


def test_a_number_of_children_is_checked_when_it_is_met() -> None:
    """A guess that is right for the numbers it was confirmed for need not be so for others."""

    def first_six(xs: list[Any]) -> Any:
        return cortex.sum(xs[:6])

    @cortex.model
    def cut(node: Any, w: Any) -> Any:
        return w.b if node.is_leaf else first_six([cut(k, w) for k in node.children])

    fast = cortex.compile(cut, {"b": np.ones(2)})
    for n in (2, 5, 6, 7, 9, 70, 3):
        np.testing.assert_array_equal(fast(node(*[node()] * n)).out, np.full(2, min(n, 6)))
    np.testing.assert_array_equal(fast([node(*[node()] * n) for n in (8, 4, 300)]).out[:, 0], [6, 4, 6])


def test_what_is_asked_of_a_child_only_where_it_has_an_attribute() -> None:
    """No node shows at first that the tag matters."""

    @cortex.model
    def doubled(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.b
        total = 0 * w.b
        for k in node.children:
            total = total + doubled(k, w) * (2 if k.extra is not None and k.tag == "b" else 1)
        return total

    def leaf(extra: Any, tag: str) -> Node:
        return Node(children=[], extra=extra, tag=tag)

    trace = Trace(doubled, {"b": np.ones(1)})
    for given in ([(None, "b")] * 3, [(1, "a"), (None, "b")], [(1, "b"), (None, "b"), (1, "b")]):
        root = Node(children=[leaf(*each) for each in given], extra=None, tag="a")
        assert evaluate(trace, root)["out"] == sum(1 + (each == (1, "b")) for each in given)
