"""Estimates of lowered programs: near the detailed prediction of the scheduled ones, and sensible about threads."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from cortex.cost.estimate import Estimator
from cortex.cost.machine import Machine
from cortex.cost.parts import parts_of
from cortex.cost.predict import Predictor
from cortex.cost.sites import Sites
from cortex.cost.tiles import Tiles
from cortex.cost.typical import typical
from cortex.schedule.registers import AS_REGISTERS_ALLOW, Registers, SumsNest

MACHINE = Machine.example()
MODELS = ("tree_fc", "tree_lstm", "nary_tree_lstm", "tree_gru", "simple_tree_gru", "mv_rnn", "dag_rnn", "lstm", "gru")


def lowered(p: Any) -> Any:
    return next(s.func for s in p.stages if s.name == "lowered")


@pytest.mark.parametrize("name", MODELS)
def test_near_the_prediction_of_the_scheduled_program(name: str, program: Any) -> None:
    p = program(name, 64)
    estimate, predict = Estimator(lowered(p), MACHINE), Predictor(p.func, MACHINE)
    for form in typical(p.model):
        assert 0.5 < estimate(form).us / predict(form).us < 1.4


def test_nests_are_priced_one_by_one(program: Any) -> None:
    p = program("tree_lstm", 64)
    estimate = Estimator(lowered(p), MACHINE)
    (form, _) = typical(p.model)
    found = estimate(form)
    assert len(found.nests) == len(estimate.parts)
    assert sum(found.nests) == found.us
    products = [us for us, part in zip(found.nests, estimate.parts, strict=True) if part.weights > 16_000]
    assert sum(products) > 0.5 * found.us


def test_two_threads_share_columns_and_wait(program: Any) -> None:
    p = program("tree_gru", 256)
    estimate = Estimator(lowered(p), MACHINE)
    (form, _) = typical(p.model)
    alone, two = estimate(form), estimate(form, 2, "columns")
    assert two.us < alone.us
    assert sum(two.nests) >= 0.45 * alone.us
    inner = form.sizes["num_groups"] - 1
    assert two.waiting == pytest.approx((3 * inner + 1) * MACHINE.barrier / 1e3), "children, gates, candidate"
    assert estimate(form, 2, "trees").waiting == 0


def test_columns_beat_nodes_where_groups_are_small(program: Any) -> None:
    p = program("tree_lstm", 256)
    estimate = Estimator(lowered(p), MACHINE)
    small, _ = typical(p.model)
    assert estimate(small, 2, "columns").us < estimate(small, 2, "nodes").us


def test_weights_that_do_not_fit_take_longer(program: Any) -> None:
    p = program("tree_fc", 64)
    (form, _) = typical(p.model)
    slow = replace(MACHINE, reads=tuple((size, rate / 50) for size, rate in MACHINE.reads))
    assert Estimator(lowered(p), slow)(form).us > 5 * Estimator(lowered(p), MACHINE)(form).us


def test_what_a_nest_is_made_of(program: Any) -> None:
    parts = parts_of(Sites.of(lowered(program("tree_fc", 64))), Registers(32, 16))
    product = max(parts, key=lambda part: part.weights)
    assert product.weights == 4 * 64 * 64  # one for each child
    assert product.height > 1
    assert product.links == 64  # one block of 64 columns
    assert product.phase.in_groups
    assert product.level == 1


@pytest.mark.parametrize(("columns", "rows"), [(80, 1), (80, 2), (112, 1)])
def test_odd_widths_get_a_tile_of_their_own(columns: int, rows: int) -> None:
    """80 columns are five vectors: four and one would leave the one waiting for itself."""
    nest = SumsNest("n", 1, 1, 1, columns, columns, None)
    tiles = Tiles(MACHINE, {"n": np.full(5, rows)}, {"n": 4.0 * columns**2})
    _, vectors = Registers(32, 16).tile(1, 1, columns, tiles(nest))
    assert vectors == columns // 16


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_even_widths_fill_the_registers(rows: int) -> None:
    nest = SumsNest("n", 1, 1, 1, 256, 256, None)
    assert Tiles(MACHINE, {"n": np.full(5, rows)}, {"n": 2.0**18})(nest) == AS_REGISTERS_ALLOW


def test_a_nest_without_rows_has_the_default_tile() -> None:
    assert Tiles(MACHINE, {}, {})(SumsNest("n", 1, 1, 1, 80, 80, None)) == AS_REGISTERS_ALLOW


def test_random_requests_take_time(program: Any) -> None:
    p = program("tree_lstm", 32)
    estimate = Estimator(lowered(p), MACHINE)
    rng = Random(3)
    for _ in range(10):
        form = p.linearize([p.small(rng) for _ in range(rng.randint(1, 5))])
        assert estimate(form).us > 0
        assert estimate(form, 2).us > 0
    assert estimate(p.linearize([])).us == 0
