"""Lowering: golden programs, agreement with the RA interpreter, and the shape the design promises."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.ilir.interp import run
from cortex.ilir.ir import For, Func, If, Scope
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.ir.step import apply
from cortex.lower.lower import lower
from cortex.lower.read import reshape_index
from cortex.ra import interp as ra_interp
from cortex.ra.simplify import simplify

Golden = Callable[[str, str], None]
LANES = 16


def lowered(name: str, hidden: int) -> tuple[Any, Any, Func]:
    entry = zoo.load(name)
    fast = cortex.compile(entry.model, entry.weights(hidden, 50), recursion=ALWAYS)
    return entry, fast, lower(fast.compiled.model, LANES)


@pytest.mark.parametrize("name", ["tree_rnn", "tree_fc", "tree_lstm", "tree_gru", "mv_rnn", "lstm"])
def test_golden(name: str, golden: Golden) -> None:
    _, _, f = lowered(name, 4)
    verify(f)
    golden(f"lower/{name}", show(f))
    namespace: dict[str, Any] = {}
    exec("from cortex.ilir.ir import *; from cortex.ir.scalar import *", namespace)
    assert eval(repr(f), namespace) == f


@pytest.mark.parametrize("name", list(zoo.ENTRIES))
def test_agrees_with_the_recursive_meaning(name: str) -> None:
    entry, fast, f = lowered(name, 3)
    trees = entry.structures(random.Random(5), 2, 50)
    form = fast.linearize(trees)
    m = fast.compiled.model
    params = ra_interp.derived(m, fast.weights)
    want = ra_interp.run(m, fast.weights, form)
    got = run(f, form.sizes, form.arrays, params | {f"field_{k}": v for k, v in form.fields.items()})
    for state, values in want.items():
        np.testing.assert_allclose(got.buffers[f"state_{state}"], values, rtol=1e-9, atol=1e-12)


def test_kinds_that_read_no_child_run_before_the_recursion() -> None:
    _, _, f = lowered("tree_lstm", 4)
    loops = [s for s in f.body if isinstance(s, For)]
    assert all(s.var.startswith("leaf_") for s in loops[:-1])
    arms = loops[-1].body
    assert [type(s) for s in arms] == [If]  # one kind recurses: no conditional but the choice of the group's kind
    assert not any(isinstance(n, If) for s in arms[0].then for n in walk(s))


def test_input_products_are_taken_out_of_the_recursion() -> None:
    _, _, f = lowered("tree_lstm_words", 4)
    before, recursion = f.body[:-1], f.body[-1]
    assert any(n == "W" for s in before for n in _buffers(s))
    assert not any(n == "W" for n in _buffers(recursion))


def test_temporaries_are_explicit_and_rows_are_padded() -> None:
    _, _, f = lowered("tree_gru", 5)
    scratch = [b for b in f.buffers if b.scope is Scope.SCRATCH]
    assert scratch and all(b.align == LANES for b in scratch if len(b.shape) > 1)


def test_absent_children_leave_no_products_behind() -> None:
    entry = zoo.load("lstm")
    fast = cortex.compile(entry.model, entry.weights(4, 50))
    first = next(k for k in fast.compiled.model.kinds if k.name == "no_prev")
    params = {getattr(let.op, "name", None) for let in first.lets}
    assert "U" not in params and "Wh" not in params


@pytest.mark.parametrize(
    ("shape", "source"),
    [
        ((6,), (2, 3)),
        ((2, 3), (6,)),
        ((4, 1, 5), (4, 5)),
        ((4, 5), (4, 5, 1)),
        ((2, 3, 4), (2, 12)),
        ((8, 3), (2, 4, 3)),
        ((1,), ()),
    ],
)
def test_reshape_index(shape: tuple[int, ...], source: tuple[int, ...]) -> None:
    from cortex.ir.simplify import simplify as fold

    for place in np.ndindex(*shape):
        index = reshape_index(shape, source, tuple(Int(int(i)) for i in place))
        values = [fold(i) for i in index]
        at = tuple(v.value for v in values if isinstance(v, Int))
        flat = np.ravel_multi_index(place, shape)
        assert (np.ravel_multi_index(at, source) if source else 0) == flat


def test_recursion_steps_are_values() -> None:
    entry = zoo.load("tree_lstm_words")
    fast = cortex.compile(entry.model, entry.weights(4, 50))
    assert apply(simplify(fast.traced), fast.schedule.on_recursion) == fast.compiled.model


def _buffers(s: Any) -> list[str]:
    return [n.buffer for n in walk(s) if hasattr(n, "buffer")]
