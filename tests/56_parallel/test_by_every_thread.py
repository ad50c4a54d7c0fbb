"""Small sums that every thread computes for itself: which they are, fewer barriers, no races, the same bits."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import some

import cortex
from cortex import compiler, zoo
from cortex.cost.choose import ALWAYS
from cortex.ilir.ir import Barrier, Scope
from cortex.ir.node import walk
from cortex.lower.lower import lower
from cortex.schedule.default import DEFAULT, nest_lists
from cortex.schedule.needed_whole import needed_whole
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.replicate import Replicate

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from races import races
from random_models import compilable, random_model
from random_structures import random_batch

VOCAB = 50
# Copies of what, and barriers in the text.
COPIES = {
    "tree_lstm": (("inner_t1",), 1),
    "tree_gru": ((), 2),  # copies would save none: one between its products, one after
    "dag_rnn": (("inner_t4",), 1),
    "tree_fc": ((), 1),
    "lstm": ((), 1),
    "gru": ((), 1),
}


@pytest.fixture(autouse=True)
def _however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "parallel_schedule", partial(parallel_schedule, least_work=0))


def on_threads(name: str, hidden: int) -> Any:
    entry = zoo.load(name)
    return cortex.compile(entry.model, entry.weights(hidden, VOCAB), threads=2, recursion=ALWAYS, choices=DEFAULT)


def copied(fast: Any) -> tuple[str, ...]:
    return tuple(b for s in fast.schedule for b in (s.buffers if isinstance(s, Replicate) else ()))


@pytest.mark.parametrize("name", COPIES)
def test_what_is_copied(name: str) -> None:
    fast = on_threads(name, 128)
    f = fast.compiled.func
    assert (copied(fast), sum(isinstance(n, Barrier) for n in walk(f))) == COPIES[name]
    assert tuple(b.name for b in f.buffers if b.scope is Scope.COPIED) == COPIES[name][0]


def test_only_what_takes_no_product_to_compute_is_needed_whole() -> None:
    fast = on_threads("tree_gru", 64)
    f = lower(fast.compiled.model, 16)
    assert [sorted(needed_whole(f, block)) for block in nest_lists(f)] == [[], [], ["inner_t1"]]  # not r * s


@pytest.mark.parametrize("name", ["tree_lstm", "tree_gru", "dag_rnn"])
def test_no_races_and_no_barrier_too_many(name: str) -> None:
    fast = on_threads(name, 32)
    entry = zoo.load(name)
    structures = entry.structures(random.Random(3), 4, VOCAB)
    form = min((fast.linearize([s]) for s in structures), key=lambda form: form.sizes["num_nodes"])
    assert all(races(fast.compiled.func, form.sizes, form.arrays, threads) == [] for threads in (2, 3))


@pytest.mark.parametrize("seed", some(range(60), range(0, 60, 6)))
def test_random_models_have_the_same_bits_on_any_number_of_threads(seed: int) -> None:
    m = random_model(seed, {40: 1, 64: 1})
    structures = random_batch(seed, m.family, m.vector)
    model, weights = compilable(m), None if m.closure else m.arrays(0.5)
    compile_it: Callable[..., Any] = partial(cortex.compile, model, weights, recursion=ALWAYS, choices=DEFAULT)
    alone, team = compile_it(), compile_it(threads=2)
    want = alone(structures)
    for threads in (1, 2, 3):
        got = team(structures, threads=threads)
        for s in alone.compiled.model.outputs:
            np.testing.assert_array_equal(got.nodes[s.name], want.nodes[s.name])
