"""Children that are treated alike: one kind of any arity, which computes what a trace for each arity computes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from loops import WEIGHTS, H, Trace, assert_same, checked, is_per_arity, model_of, star, tree, unmerged
from random_loops import PER_CHILD, REDUCTIONS, random_combine

import cortex
from cortex.ra.show import show


@pytest.mark.parametrize("name", REDUCTIONS)
def test_every_reduction_is_one_kind_after_one_example(name: str) -> None:
    model = model_of(lambda node, w, states: REDUCTIONS[name](w, w.E[node.word], states) + w.E[node.word])
    trace = Trace(model, WEIGHTS)
    trace.see([star(2)])
    assert [k.name for k in checked(trace).kinds] == ["leaf", "inner"], trace.per_arity()
    for arity in (1, 2, 3, 11):
        assert_same(trace, model, star(arity))
    assert not trace.see([tree(Random(0), 3)])


@pytest.mark.parametrize("name", PER_CHILD)
def test_every_way_to_treat_a_child(name: str) -> None:
    model = model_of(
        lambda node, w, states: sum((PER_CHILD[name](node, w, w.E[node.word], h) for h in states), w.E[node.word])
    )
    trace = Trace(model, WEIGHTS)
    trace.see([star(3)])
    assert [k.name for k in checked(trace).kinds] == ["leaf", "inner"], trace.per_arity()
    assert_same(trace, model, tree(Random(1), 3))


@pytest.mark.parametrize("seed", range(30))
def test_random_loops(seed: int) -> None:
    rng = Random(seed)
    model = model_of(random_combine(rng))
    trace = Trace(model, WEIGHTS)
    trace.see([star(rng.randint(1, 5))])
    kinds = [k for k in checked(trace).kinds if "no_word" not in k.name]
    assert not any(is_per_arity(k) for k in kinds), trace.per_arity()
    for _ in range(2):
        root = tree(rng, 2, 9)
        assert not trace.see([root]), "a new arity is no new kind"
        assert_same(trace, model, root)


@pytest.mark.parametrize("seed", range(40, 44))
def test_compiled_random_loops(seed: int) -> None:
    rng = Random(seed)
    model = model_of(random_combine(rng))
    fast = cortex.compile(model, WEIGHTS, examples=[star(1), star(2)])
    before = fast.compilations
    for root in [tree(rng, 3, 6), *(star(n) for n in (1, 2, 40))]:
        np.testing.assert_allclose(fast(root).out, unmerged(model, root)["out"], rtol=2e-4, atol=2e-5)
    assert fast.compilations == before


def test_no_compilation_for_any_arity_after_one_example() -> None:
    @cortex.model
    def child_sum(node: Any, w: Any) -> Any:
        c, h = cortex.zeros(H), cortex.zeros(H)
        for child in node.children:
            state = child_sum(child, w)
            h = h + state.h
            c = c + cortex.sigmoid(w.U @ state.h + w.b) * state.c
        c = c + cortex.tanh(w.U @ h + w.E[node.word])
        return cortex.state(h=cortex.tanh(c), c=c)

    fast = cortex.compile(child_sum, WEIGHTS, examples=[star(2)])
    before = fast.compilations
    rng = Random(0)
    for arity in rng.sample(range(1, 41), 40):
        root = star(arity)
        root.children[rng.randrange(arity)] = tree(rng, 2, 12)
        np.testing.assert_allclose(fast(root).h, unmerged(child_sum, root)["h"], rtol=1e-4, atol=1e-5)
    assert fast.compilations == before


def test_the_sum_is_taken_in_the_order_of_the_children() -> None:
    """Bits depend on the order: that of the model's loop."""
    model = model_of(lambda node, w, states: sum(states))
    fast = cortex.compile(model, WEIGHTS, examples=[star(2)])
    root = star(23)
    expected = np.float32(0)
    for leaf in fast(root.children).out:
        expected = expected + leaf
    np.testing.assert_array_equal(fast(root).out, expected)


def test_what_a_merged_kind_looks_like(golden: Callable[[str, str], None]) -> None:
    @cortex.model
    def attention(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.E[node.word]
        rows = []
        for child in node.children:
            rows.append(attention(child, w).reshape(1, H))
        values = cortex.concat(rows)
        shares = cortex.softmax(values @ w.q, axis=0)
        return cortex.tanh(shares @ values / len(rows) + w.b)

    trace = Trace(attention, WEIGHTS)
    trace.see([star(2)])
    golden("ra/attention_of_any_arity", show(checked(trace)))
