"""`fast.vjp`: the compiled passes, against the interpreter in double precision."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from gradients import interpreted

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.errors import ModelError
from cortex.runtime.executable import Executable
from cortex.schedule.default import DEFAULT

WORDS = 30


def compiled(name: str, hidden: int = 20, **options: Any) -> tuple[Executable, list[Any]]:
    entry = zoo.load(name)
    trees = entry.structures(Random(1), 3, WORDS)
    weights = entry.weights(hidden, WORDS)
    options = {"choices": DEFAULT, "recursion": ALWAYS} | options
    return cortex.compile(entry.model, weights, examples=trees, check=False, **options), trees


@pytest.fixture(scope="module")
def tree_rnn() -> tuple[Executable, list[Any]]:
    return compiled("tree_rnn", 24)


def wanted(fast: Executable, trees: list[Any], roots: dict[str, Any]) -> dict[str, Any]:
    """The gradients for adjoints of the roots, from the interpreter."""
    from cortex.runtime.linearize import linearize

    m = fast.traced
    form = linearize(m, trees, accessors=fast._trace.accessors)
    seeds = {s.name: np.zeros((form.sizes["num_nodes"], *s.type.shape)) for s in m.states}
    for name, x in roots.items():
        np.add.at(seeds[name], form.arrays["root"], x)
    params = {name: np.asarray(x, np.float64) for name, x in fast.weights.items() if name in {p.name for p in m.params}}
    return interpreted(m, params, form, seeds)[1]


@pytest.mark.parametrize("name", ["tree_lstm", "dag_rnn"])
def test_gradients_agree_with_the_interpreter(name: str) -> None:
    fast, trees = compiled(name)
    out, pullback = fast.vjp(trees)
    rng = np.random.default_rng(0)
    roots = {s: rng.normal(size=out[s].shape).astype(np.float32) for s in zoo.load(name).states}
    found, exact = pullback(**roots), wanted(fast, trees, roots)
    plain = fast(trees)
    for state in roots:
        np.testing.assert_allclose(out[state], plain[state], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(out.nodes[state], plain.nodes[state], rtol=1e-5, atol=1e-6)
    assert found.keys() == zoo.load(name).weights(20, WORDS).keys()
    for key, x in exact.items():
        np.testing.assert_allclose(found[key], x, rtol=1e-4, atol=1e-5 * np.abs(x).max())


def test_bits_do_not_depend_on_threads_and_a_pullback_is_called_again(tree_rnn: tuple[Executable, list[Any]]) -> None:
    fast, trees = tree_rnn
    one, first = fast.vjp(trees)
    two, second = fast.vjp(trees, threads=2)
    x = np.random.default_rng(0).normal(size=one.h.shape).astype(np.float32)
    assert np.array_equal(one.nodes.h, two.nodes.h)
    a, b, again = first(h=x), second(h=x), first(h=x)
    for name in a:
        assert np.array_equal(a[name], b[name]) and np.array_equal(a[name], again[name])


def test_adjoints_at_every_node_and_updated_weights(tree_rnn: tuple[Executable, list[Any]]) -> None:
    fast, trees = tree_rnn
    out, pullback = fast.vjp(trees[0])
    x = np.random.default_rng(0).normal(size=out.nodes.h.shape).astype(np.float32)
    at_root = pullback(h=np.ones_like(out.h))
    zeros = np.zeros_like(x)
    zeros[0] = 1  # the root is visited first
    at_nodes = pullback(nodes={"h": zeros})
    assert all(np.array_equal(at_root[name], at_nodes[name]) for name in at_root)
    weights = {name: 2 * np.asarray(v) for name, v in zoo.load("tree_rnn").weights(24, WORDS).items()}
    fast.update(weights)
    changed, _ = fast.vjp(trees[0])
    assert np.allclose(changed.h, fast(trees[0]).h, rtol=1e-5, atol=1e-6)
    assert not np.allclose(changed.h, out.h)


def test_what_is_wrong_with_adjoints_is_said(tree_rnn: tuple[Executable, list[Any]]) -> None:
    fast, trees = tree_rnn
    out, pullback = fast.vjp(trees)
    with pytest.raises(ModelError, match=r"adjoints may be given for h"):
        pullback(c=out.h)
    with pytest.raises(ModelError, match=r"shape \(24,\); that of structures is \(3, 24\)"):
        pullback(h=out.h[0])
    with pytest.raises(ModelError, match="there is no state 'c'"):
        fast.vjp(trees, of=["c"])
