"""What nodes above leaves look up: which values, with what meaning, from which tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from ra_models import child_sum, random_params, tree_fc, tree_lstm

from cortex.ir.step import Step, apply
from cortex.ra import ir
from cortex.ra.interp import run, tables
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.fix_arity import FixArity
from cortex.recursion.hoist import Hoist
from cortex.recursion.refactor import Refactor
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts, leaf_products, table_bytes
from cortex.recursion.unroll import UnrollRecursion
from cortex.runtime.linearize import linearize

STEPS: list[tuple[Callable[[], ir.Model], tuple[Step[ir.Model], ...]]] = [
    (tree_lstm, (TabulateLeafProducts(),)),
    (tree_lstm, (Tabulate(), TabulateLeafProducts())),
    (tree_lstm, (TabulateLeafProducts(), Tabulate(), Hoist())),
    (tree_lstm, (Hoist(), Tabulate(), TabulateLeafProducts(), FixArity("inner_above_leaves", 2))),
    (tree_lstm, (FixArity("inner", 2), TabulateLeafProducts())),
    (tree_lstm, (Refactor(), Tabulate(), TabulateLeafProducts())),
    (tree_lstm, (TabulateLeafProducts(), Refactor())),
    (tree_fc, (TabulateLeafProducts(),)),
    (tree_fc, (TabulateLeafProducts(), UnrollRecursion())),
    (tree_fc, (Batch("depth"), TabulateLeafProducts(), Dedup())),
]


def tree(rng: Random, depth: int, binary: bool) -> SimpleNamespace:
    """A tree with two children at every inner node, or up to three."""
    count = 0 if depth == 0 or rng.random() < 0.3 else 2 if binary else rng.randint(1, 3)
    below = [tree(rng, depth - 1, binary) for _ in range(count)]
    left, right = below if count == 2 else (None, None)
    return SimpleNamespace(children=below, left=left, right=right, word=rng.randrange(7))


@pytest.mark.parametrize(("model", "steps"), STEPS, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_it_means_the_same(model: Callable[[], ir.Model], steps: tuple[Step[ir.Model], ...]) -> None:
    m = simplify(model())
    after = apply(m, steps)
    verify(after)
    rng = Random(0)
    params = random_params(m, np.random.default_rng(0))
    for depth in (0, 1, 2, 5):
        trees = [tree(rng, depth, binary=model is tree_fc) for _ in range(4)]
        states = []
        for each in (m, after):
            form = linearize(each, trees)
            states.append({k: v[form.arrays["order"]] for k, v in run(each, params, form).items()})
        for name, value in states[0].items():
            np.testing.assert_allclose(states[1][name], value, atol=1e-13)


def test_all_that_needs_one_child_alone_is_looked_up() -> None:
    m = TabulateLeafProducts().apply(Tabulate().apply(simplify(tree_lstm())))
    above = next(k for k in m.kinds if k.name == "inner_above_leaves")
    assert not any(isinstance(let.op, ir.Contract | ir.State) for let in above.lets)
    assert sum(isinstance(let.op, ir.Lookup) for let in above.lets) == 4  # three gates, and what is kept of the child
    assert [len(t.params) for t in m.tables] == [6]


def test_equal_products_are_one_column() -> None:
    m = simplify(tree_fc())
    inner = m.kinds[1]
    half = next(let.op for let in inner.lets if isinstance(let.op, ir.Slice))
    lets = tuple(replace(let, op=half) if isinstance(let.op, ir.Slice) else let for let in inner.lets)
    m = replace(m, kinds=(m.kinds[0], replace(inner, lets=lets)))
    found = leaf_products(m)
    assert not isinstance(found, str)
    assert len(found.functions) == 1
    assert (found.row_bytes, found.multiply_adds) == (16, 16)
    assert table_bytes(found.model) == found.bytes == 7 * 16


def test_tables_have_the_products_of_leaves() -> None:
    rng = np.random.default_rng(0)
    m = simplify(tree_fc())
    params = random_params(m, rng)
    filled = tables(TabulateLeafProducts().apply(m), params)
    np.testing.assert_allclose(filled["leaf_0"], params["emb"] @ params["W"][:, :4].T, atol=1e-14)
    np.testing.assert_allclose(filled["leaf_1"], params["emb"] @ params["W"][:, 4:].T, atol=1e-14)


def test_leaves_that_are_not_told_apart_cannot_be_looked_up() -> None:
    found = leaf_products(child_sum())
    assert isinstance(found, str)
    assert "computes no state" in found
