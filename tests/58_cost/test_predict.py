"""Predicted times: what they depend on, and that predicting is quick."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cortex import zoo
from cortex.cost.machine import Machine
from cortex.cost.predict import Prediction, Predictor
from cortex.cost.typical import BATCHES, typical
from cortex.ilir.ir import Barrier, For, Func
from cortex.runtime.linearize import linearize
from cortex.schedule.default import Choices
from cortex.schedule.registers import TileChoice

MACHINE = Machine.example()


def predict(p: Any, batch: int) -> Prediction:
    return Predictor(p.func, MACHINE)(typical(p.model)[BATCHES.index(batch)])


def test_more_structures_take_longer_but_less_each(program: Any) -> None:
    p = program("tree_rnn", 64)
    one, ten = predict(p, 1).us, predict(p, 10).us
    assert one < ten < 10 * one


def test_a_tall_tile_is_bound_by_arithmetic_and_a_low_one_by_latency(program: Any) -> None:
    tall = predict(program("tree_fc", 256), 10)
    low = predict(program("tree_fc", 256, Choices(tile=TileChoice(1, 1))), 10)
    assert tall.phases[-1].bound == "arithmetic"
    assert low.phases[-1].bound == "latency"
    assert low.us > 2 * tall.us


def test_single_rows_are_bound_by_reading_weights(program: Any) -> None:
    small, large = predict(program("lstm", 256), 1), predict(program("lstm", 640), 1)
    assert small.phases[-1].bound == "L2"
    assert large.phases[-1].bound == "beyond L2"
    assert large.us > (640 / 256) ** 2 * small.us


def test_barriers_cost_time(program: Any) -> None:
    p = program("tree_rnn")
    form = typical(p.model)[0]
    *first, groups = p.func.body
    assert isinstance(groups, For)
    waiting = Func(
        p.func.name,
        p.func.sizes,
        p.func.index_functions,
        p.func.buffers,
        (*first, For(groups.var, groups.lo, groups.hi, (*groups.body, Barrier()))),
    )
    before, after = Predictor(p.func, MACHINE)(form, 2), Predictor(waiting, MACHINE)(form, 2)
    assert (before.barriers, after.barriers) == (0, form.sizes["num_groups"])
    assert after.us - before.us == pytest.approx(form.sizes["num_groups"] * MACHINE.barrier / 1e3)


def test_bytes_by_level_are_accounted_for(program: Any) -> None:
    p = program("tree_lstm", 64)
    prediction = predict(p, 10)
    for phase in prediction.phases[1:]:
        assert phase.us > 0 and phase.work.loaded > 0
        assert set(phase.bytes) <= {"L1", "L2", "beyond L2"}
        assert sum(phase.parts.values()) == pytest.approx(phase.us)


def test_predicting_is_quick(program: Any) -> None:
    """So many calls of functions take 3 ms; there are no more for ten times the nodes."""
    p = program("tree_lstm", 256)
    predictor, (small, large) = Predictor(p.func, MACHINE), typical(p.model)
    assert (small.sizes["num_nodes"], large.sizes["num_nodes"]) == (37, 370)
    assert calls(lambda: predictor(large)) < 10_000
    assert calls(lambda: predictor(large)) < 1.1 * calls(lambda: predictor(small))


def calls(run: Callable[[], object]) -> int:
    """How many functions are called, those of extensions among them."""
    events: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, arg: events.update([event]))
    try:
        run()
    finally:
        sys.setprofile(None)
    return events["call"] + events["c_call"]


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_typical_requests_suit_every_model(name: str, program: Any) -> None:
    p = program(name)
    real = linearize(p.model, [p.small(Random(1))], parts=1)
    for batch, form in zip(BATCHES, typical(p.model), strict=True):
        assert form.sizes.keys() == real.sizes.keys()
        assert form.sizes["num_roots"] == batch
        assert form.arrays["group_len"].sum() == form.sizes["num_nodes"]
        assert sorted(form.arrays["kind_node"].tolist()) == list(range(form.sizes["num_nodes"]))
        assert Predictor(p.func, MACHINE)(form).us > 0
