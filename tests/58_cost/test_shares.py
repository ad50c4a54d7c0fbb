"""What several threads bring: shares of parallel loops, whole structures, barriers."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from cortex.cost.count import Counter
from cortex.cost.machine import Machine
from cortex.cost.predict import Predictor
from cortex.cost.typical import typical
from cortex.ilir.interp import run
from cortex.runtime.linearize import linearize
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.parallel_trees import ParallelTrees

MACHINE = Machine.example()


def shared_out(p: Any, mapping: Any, threads: int = 2) -> Any:
    f = next(s.func for s in p.stages if s.name == "scheduled")
    for step in parallel_schedule(f, threads, mapping, least_work=0):
        f = step.apply(f)
    return f


@pytest.mark.parametrize("mapping", ["columns", "nodes", "trees"])
def test_counts_are_those_of_the_interpreter(program: Any, mapping: str) -> None:
    p = program("tree_gru")
    f = shared_out(p, mapping)
    form = linearize(p.model, [p.small(Random(seed)) for seed in range(4)], parts=3)
    counts = run(f, form.sizes, form.arrays, p.inputs(form)).counts
    assert Counter(f)(form).counts() == counts


def test_two_threads_take_half_of_what_they_share(program: Any) -> None:
    p = program("tree_fc", 256)
    form = typical(p.model, 2)[1]
    predict = Predictor(shared_out(p, "columns"), replace(MACHINE, barrier=0.0))
    one, two, many = (predict(form, threads).us for threads in (1, 2, 1000))
    assert 0.5 * one <= two < 0.55 * one
    assert many < two


def test_whole_trees_take_what_the_last_thread_takes(program: Any) -> None:
    p = program("tree_fc", 64)
    f = shared_out(p, "trees")
    assert f.sizes[-1] == "num_parts"
    predict = Predictor(f, MACHINE)
    form = typical(p.model, 2)[1]
    groups = form.arrays["part_group"].tolist()
    assert groups == [0, groups[2] // 2, groups[2]]
    one, two = predict(form), predict(form, 2)
    by_group = np.sum([t.us_by_group for t in two.phases], axis=0)
    halves = [by_group[a:b].sum() for a, b in ((0, groups[1]), (groups[1], groups[2]))]
    assert two.us == pytest.approx(by_group[-1] + max(halves))
    assert two.us < 0.6 * one.us
    assert predict(typical(p.model, 2)[0], 2).us > 0.9 * predict(typical(p.model, 2)[0]).us  # one tree: one thread
    assert two.barriers == 1


def test_small_groups_are_better_shared_out_by_trees(program: Any) -> None:
    p = program("tree_gru", 64)
    form = typical(p.model, 2)[1]
    us = {mapping: Predictor(shared_out(p, mapping), MACHINE)(form, 2).us for mapping in ("columns", "nodes", "trees")}
    assert us["trees"] < us["columns"]
    assert us["trees"] < us["nodes"]


def test_phases_are_those_of_the_serial_program(program: Any) -> None:
    p = program("tree_gru")
    f = next(s.func for s in p.stages if s.name == "scheduled")
    serial, trees = Counter(f).sites.phases, Counter(ParallelTrees().apply(f)).sites.phases
    assert [x.label() for x in serial] == [x.label() for x in trees]
    assert [x.in_groups for x in serial] == [x.in_groups for x in trees]
