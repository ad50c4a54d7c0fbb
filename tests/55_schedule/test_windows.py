"""Windows: the same meaning with fewer rows, where it is legal; and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from checks import check_refused

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.ilir.interp import run
from cortex.ilir.ir import Barrier, For, Func, Scope
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.step import Step, apply
from cortex.lower.linear_form import NUM_NODES, NUM_WINDOWS, LinearForm, kinds_in_windows
from cortex.lower.lower import lower
from cortex.ra import interp
from cortex.ra.simplify import simplify
from cortex.runtime import linearize
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.default import Choices, default_schedule
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_default import Sharing
from cortex.schedule.registers import Registers
from cortex.schedule.windows import Windows

Golden = Callable[[str, str], None]
VOCAB = 20
WITH_INPUTS = ("gru", "lstm", "dag_rnn", "tree_lstm_words")


class Case:
    """A model of the zoo, after the steps that are always applied, with a request."""

    def __init__(self, name: str, hidden: int = 3, count: int = 2) -> None:
        entry = zoo.load(name)
        self.batch = entry.structures(random.Random(0), count, VOCAB)
        fast = cortex.compile(entry.model, entry.weights(hidden, VOCAB), examples=self.batch[:2], table_bytes=0)
        self.model = apply(simplify(fast.traced), ALWAYS)
        self.lowered = lower(self.model, 16)
        self.params = interp.derived(self.model, dict(fast.weights))

    def form(self, f: Func) -> LinearForm:
        windows = kinds_in_windows(i.name for i in f.index_functions)
        return LinearForm(**linearize.linearizer(self.model, windows=windows).linearize(self.batch))

    def states(self, f: Func) -> dict[str, Any]:
        form = self.form(f)
        found = run(f, form.sizes, form.arrays, self.params).buffers
        return {b.name: found[b.name] for b in f.buffers if b.scope is Scope.STATE}


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 16 nodes, so that small requests have many."""
    monkeypatch.setattr(linearize, "WINDOW_NODES", 16)


def test_golden(golden: Golden) -> None:
    f = Case("dag_rnn").lowered
    g = Windows().apply(f)
    verify(g)
    golden("schedule/windows", f"{Windows()!r}\n\n-- before --\n{show(f)}\n-- after --\n{show(g)}")


@pytest.mark.parametrize("name", WITH_INPUTS)
def test_same_meaning(name: str, small_windows: None) -> None:
    case = Case(name)
    steps = default_schedule(case.lowered, Registers(32, 16, 1))
    for f in (case.lowered, apply(case.lowered, steps)):
        g = Windows().apply(f)
        verify(g)
        assert case.form(g).sizes[NUM_WINDOWS.name] > 2
        assert rows_per_node(g) < rows_per_node(f)
        for state, want in case.states(f).items():
            np.testing.assert_array_equal(case.states(g)[state], want)


def rows_per_node(f: Func) -> int:
    return sum(b.shape[0] == NUM_NODES for b in f.buffers)


@pytest.mark.parametrize("name", ["gru", "tree_lstm_words"])
def test_same_bits_on_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = zoo.load(name)
    batch = entry.structures(random.Random(1), 6, VOCAB)
    weights = entry.weights(32, VOCAB)
    want = cortex.compile(entry.model, weights, examples=batch, table_bytes=0)(batch).nodes
    monkeypatch.setattr(linearize, "WINDOW_NODES", 16)
    mappings: tuple[Sharing, ...] = ("columns", "nodes")
    for mapping in mappings:
        choices = Choices(parallel=mapping)
        fast = cortex.compile(entry.model, weights, recursion=ALWAYS, choices=choices, threads=2)
        fast(batch)
        assert Windows() in fast.schedule.steps
        assert fast.linearize(batch).sizes[NUM_WINDOWS.name] > 2
        for threads, state in product((1, 2, 3), entry.states):
            assert fast(batch, threads=threads).nodes[state].tobytes() == want[state].tobytes()


SHARED = (Parallel("inner_t2_j0"), Parallel("inner_t3_j0"), Parallel("inner_t5_j0"))
REFUSED: dict[str, tuple[str, tuple[Step[Func], ...], Step[Func]]] = {
    "nothing_ahead": ("tree_rnn", (), Windows()),
    "unknown_loop": ("dag_rnn", (), Windows("x")),
    "not_the_groups": ("dag_rnn", (), Windows("inner_t2_i")),
    "twice": ("dag_rnn", (Windows(),), Windows()),
    "barriers": ("dag_rnn", (*SHARED, Alone(), PlaceBarriers()), Windows()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    model, before, step = REFUSED[name]
    check_refused(golden, f"schedule/refused_windows_{name}", apply(Case(model).lowered, before), step)


def test_barriers_keep_windows_apart() -> None:
    """Threads must not write a window's rows while others still read the last one's."""
    f = Case("dag_rnn").lowered
    own = apply(f, (*SHARED, Windows(), Alone(), PlaceBarriers()))
    other = apply(
        f, (Parallel("inner_t2_i"), Parallel("inner_t3_i"), Parallel("inner_t6_n"), Windows(), Alone(), PlaceBarriers())
    )
    for g in (own, other):
        verify(g)
        (windows,) = (s for s in g.body if isinstance(s, For) and s.hi == NUM_WINDOWS)
        assert any(isinstance(n, Barrier) for n in walk(windows))
