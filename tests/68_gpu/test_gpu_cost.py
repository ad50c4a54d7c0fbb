"""The cost model of the GPU form: counts are those of the program."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest

import cortex
from cortex import zoo
from cortex.codegen.gpu.walk_host import launches
from cortex.cost.gpu import GpuPrediction, GpuPredictor
from cortex.cost.gpu_grid import ITEMS, choose_grid
from cortex.cost.gpu_machine import GpuMachine
from cortex.cost.typical import typical
from cortex.ilir import interp
from cortex.lower.lower import lower

V100 = GpuMachine.v100_like()
HIDDEN, GROUPS = 16, 4


class Compiled:
    """A model of the zoo compiled for a GPU of four multiprocessors, and a request."""

    def __init__(self, name: str, persistent: bool = True) -> None:
        entry = zoo.load(name)
        self.target = cortex.gpu_target("cuda", groups=GROUPS, persistent=persistent)
        trees = entry.structures(Random(3), 3, 20)
        fast = cortex.compile(entry.model, entry.weights(HIDDEN, 20), examples=trees, target=self.target)
        self.model, self.func, self.weights = fast.compiled.model, fast.compiled.func, fast.weights
        self.program = fast.compiled.code.program
        self.form = fast.linearize(trees)

    def predict(self, persistent: bool, machine: GpuMachine = V100) -> GpuPrediction:
        return GpuPredictor(self.func, self.target.grid, machine, persistent)(self.form)


@cache
def compiled_once(name: str, persistent: bool = True) -> Compiled:
    """Nothing changes what was compiled, and several tests look at it."""
    return Compiled(name, persistent)


@pytest.fixture(params=["tree_fc", "tree_lstm", "tree_gru", "mv_rnn", "dag_rnn"])
def compiled(request: pytest.FixtureRequest) -> Compiled:
    return compiled_once(request.param)


@pytest.mark.parametrize("name", ["tree_lstm", "dag_rnn", "mv_rnn"])
def test_launches_are_those_of_the_host_program(name: str) -> None:
    c = compiled_once(name, persistent=False)
    run = list(launches(c.program, c.form.sizes, c.form.arrays))
    found = c.predict(False)
    assert found.launches == len(run) > 1
    assert found.parts["launches"] == len(run) * V100.launch and found.parts["barriers"] == 0


def test_a_persistent_kernel_is_one_launch(compiled: Compiled) -> None:
    run = list(launches(compiled.program, compiled.form.sizes, compiled.form.arrays))
    assert compiled.predict(True).launches == len(run) == 1


def test_barriers_and_operations_are_those_of_the_interpreter(compiled: Compiled) -> None:
    ran = interp.run(
        compiled.func,
        compiled.form.sizes,
        compiled.form.arrays,
        {**compiled.weights, **{f"field_{n}": a for n, a in compiled.form.fields.items()}},
    )
    found = compiled.predict(True)
    assert found.barriers == ran.counts.barriers > 0
    assert found.operations == sum(ran.counts.flops.values())
    assert compiled.predict(False).barriers == 0


def test_the_time_is_the_sum_of_its_parts(compiled: Compiled) -> None:
    found = compiled.predict(True)
    assert found.us == pytest.approx(sum(found.parts.values()))
    assert found.parts["launches"] == V100.launch and found.parts["barriers"] == found.barriers * V100.barrier


def test_a_slower_machine_takes_longer(compiled: Compiled) -> None:
    best = compiled.predict(True)
    for worse in (
        replace(V100, l2_latency=10 * V100.l2_latency, l1_latency=10 * V100.l1_latency),
        replace(V100, clock=V100.clock / 2),
        replace(V100, barrier=2 * V100.barrier),
        replace(V100, l2_bandwidth=1.0, bandwidth=1.0),
    ):
        assert compiled.predict(True, worse).us > best.us


@pytest.mark.parametrize("persistent", [True, False])
def test_bytes_of_weights(persistent: bool) -> None:
    """A group of inner nodes reads the bias, and the matrix if that is not in local memory; leaves read rows."""
    c = compiled_once("tree_fc", persistent)
    inner = int((c.form.arrays["group_kind"] == 1).sum())
    leaves = int(c.form.arrays["kind_start"][1])
    matrix, bias, rows = 4 * 2 * HIDDEN * HIDDEN, 4 * HIDDEN, 4 * HIDDEN * leaves
    times = 1 if persistent else inner
    assert c.predict(persistent).weight_bytes == times * matrix + inner * bias + rows


def test_what_all_groups_read_is_read_by_each() -> None:
    """The sum of the children, of which a work-group computes its columns, is read by all."""
    c = compiled_once("dag_rnn")
    one = GpuPredictor(c.func, replace(c.target.grid, groups=1), V100, True)(c.form)
    inner = int(c.form.arrays["kind_start"][2] - c.form.arrays["kind_start"][1])
    assert c.predict(True).other_bytes - one.other_bytes == (GROUPS - 1) * inner * 4 * HIDDEN


def test_the_grid_suits_the_columns() -> None:
    """256 columns are four for each of 64 work-groups; of 80 work-groups, some would have none."""
    entry = zoo.load("tree_fc")
    trees = entry.structures(Random(3), 3, 20)
    wide = cortex.compile(
        entry.model, entry.weights(256, 20), examples=trees, target=cortex.gpu_target("cuda", "sm_70")
    )
    grid = wide.compiled.code.target.grid
    assert grid.groups == 64 and grid.items[0] * grid.items[1] == ITEMS
    m = wide.compiled.model
    assert choose_grid(lower(m, 1), typical(m), V100, 80, grid.local_bytes, True) == grid
