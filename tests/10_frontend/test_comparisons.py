"""Numbers that control flow compares: a kind for each answer, not for each value."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node

import cortex
from cortex.errors import ModelError, StructureError
from cortex.ra.ir import Compares, Fact
from cortex.ra.show import show

W = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([-1.0, -2.0, -3.0])}
NUMBERS = [0.5, 0.25, 3, -7, True, 10**40, np.float32(0.5), np.int8(3), np.float64(1e300), *map(float, ("inf", "nan"))]
ORDERS: list[Callable[[Any, Any], Any]] = [operator.lt, operator.le, operator.gt, operator.ge]


def tree(*values: Any) -> Node:
    return Node(x=0.0, children=[Node(x=value, children=[]) for value in values])


@pytest.mark.parametrize("bound", [0.5, 3, np.float64(0.25), True, math.inf, math.nan])
@pytest.mark.parametrize("compare", ORDERS)
def test_every_number_in_every_order(compare: Callable[[Any, Any], Any], bound: Any) -> None:
    @cortex.model
    def chosen(node: Any, w: Any) -> Any:
        below = cortex.sum(chosen(k, w) for k in node.children)
        return below + cortex.where(compare(node.x, bound), w.a, w.b)

    fast = cortex.compile(chosen, W, examples=tree(0.0))
    for value in NUMBERS:
        want = W["a"] if compare(value, bound) else W["b"]
        assert np.array_equal(fast(Node(x=value, children=[])).out, want.astype(np.float32)), value
        assert np.array_equal(fast.interpret(Node(x=value, children=[]))["out"][0], want.astype(np.float32))
    assert len(fast.traced.kinds) <= 2


@cortex.model
def clipped(node: Any, w: Any) -> Any:
    """Comparisons from the right, chained, and by Python's own functions."""
    x = w.a if 0.1 < node.x <= 0.9 else w.b
    return x * max(min(2, node.x), 0.5) + cortex.sum(clipped(k, w) for k in node.children)


def test_new_values_need_no_compilation() -> None:
    random = np.random.default_rng(0)
    fast = cortex.compile(clipped, W, examples=tree(0.0, 0.3, 0.7, 1.5, 3.0))
    before = fast.compilations
    for _ in range(20):
        values = random.uniform(-1, 4, 5).tolist()
        # What min and max return is the field, or the bound that it compares with.
        want = sum(W["a" if 0.1 < x <= 0.9 else "b"] * max(min(2, x), 0.5) for x in [0.0, *values])
        np.testing.assert_allclose(fast(tree(*values)).out, want, rtol=1e-5)
    assert fast.compilations == before


def test_guards_are_shown() -> None:
    fast = cortex.compile(clipped, W, examples=tree(0.0, 0.3, 3.0))
    assert Fact(Compares("x", "gt", 0.1), False) in {fact for kind in fast.traced.kinds for fact in kind.guard}
    text = show(fast.traced)
    assert "node.x > 0.1" in text and "not node.x > 0.1" in text


@cortex.model
def masked(node: Any, w: Any) -> Any:
    """Arrays are compared element by element, also with themselves."""
    x = cortex.where(node.x != node.x, 0.0, node.x)
    return cortex.where(node.x > 1, x * 10, x) + cortex.sum(masked(k, w) for k in node.children)


def test_arrays_are_compared_by_elements() -> None:
    fast = cortex.compile(masked, W)
    for x in (np.array([0.5, math.nan, 2.0], np.float32), [0.5, math.nan, 2.0]):
        assert fast(Node(x=x, children=[])).out.tolist() == [0.5, 0.0, 20.0]
    assert len(fast.traced.kinds) == 1


def test_is_it_nan() -> None:
    @cortex.model
    def zeroed(node: Any, w: Any) -> Any:
        x = node.x
        return cortex.where(x != x, w.b, w.a) * 1.0 + cortex.sum(zeroed(k, w) for k in node.children)

    fast = cortex.compile(zeroed, W)
    for value in (1.5, -2.5, math.inf):
        assert np.array_equal(fast(Node(x=value, children=[])).out, W["a"])
    assert np.array_equal(fast(Node(x=math.nan, children=[])).out, W["b"])
    assert len(fast.traced.kinds) == 3  # numbers, NaN, and None, which equals itself


def test_children_in_a_sum_are_compared_one_by_one() -> None:
    @cortex.model
    def heavy(node: Any, w: Any) -> Any:
        kids = node.children
        some = cortex.sum(cortex.where(k.x > 0.5, heavy(k, w), 0.0) for k in kids)
        return w.a + some + cortex.sum(cortex.where(k.flag, w.b, w.a) for k in kids)

    random = np.random.default_rng(0)
    for _ in range(3):
        kids = [Node(x=float(x), flag=bool(x > 0.2), children=[]) for x in random.uniform(0, 1, 4)]
        want = W["a"] + sum((k.x > 0.5) * W["a"] + W["b" if k.flag else "a"] for k in kids)
        got = cortex.compile(heavy, W)(Node(x=0.0, flag=False, children=kids)).out
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_flag_chooses() -> None:
    @cortex.model
    def flagged(node: Any, w: Any) -> Any:
        return cortex.where(node.flag, w.a, w.b) + cortex.sum(flagged(k, w) for k in node.children)

    fast = cortex.compile(flagged, W)
    root = Node(flag=True, children=[Node(flag=np.True_, children=[]), Node(flag=False, children=[])])
    assert np.array_equal(fast(root).out, W["a"])


def test_loops_that_count_children_are_of_any_arity() -> None:
    @cortex.model
    def counted(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.a
        total, i = w.b, 0
        while i < node.count:
            total, i = total + counted(node.children[i], w), i + 1
        return total

    def star(count: int) -> Node:
        return Node(count=count, children=[Node(count=0, children=[]) for _ in range(count)])

    fast = cortex.compile(counted, W, examples=[star(n) for n in (1, 2, 3, 4, 5)])
    before = fast.compilations
    assert np.array_equal(fast(star(17)).out, W["b"] + 17 * W["a"])
    assert fast.compilations == before


def test_saved(tmp_path: Path) -> None:
    fast = cortex.compile(clipped, W, examples=tree(0.0, 0.3, 0.7, 3.0))
    fast.save(tmp_path / "m.cortex")
    loaded = cortex.load(tmp_path / "m.cortex")
    assert loaded(tree(0.2, 0.05, 9.0)).out.tobytes() == fast(tree(0.2, 0.05, 9.0)).out.tobytes()
    narrow = cortex.compile(clipped, W, examples=tree(0.0))
    narrow.save(tmp_path / "n.cortex")
    with pytest.raises(StructureError, match=r"\(node\.x > 0\.1\) is True, and known is False"):
        cortex.load(tmp_path / "n.cortex")(tree(0.0, 0.3))


def test_a_text_is_not_below_a_number() -> None:
    fast = cortex.compile(clipped, W, examples=tree(0.0))
    with pytest.raises(
        (ModelError, StructureError), match=r"'x' of a Node with 0\.1, but its value is 'far'; it must be"
    ):
        fast(tree("far"))
