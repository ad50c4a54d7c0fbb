"""The counts of the cost model are those of the interpreter, exactly."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from cortex import zoo
from cortex.cost.count import Counter
from cortex.errors import InternalError
from cortex.ilir.interp import run
from cortex.ilir.ir import Barrier, Buffer, For, Func, If, Scope, Store
from cortex.ir.scalar import Binary, Float, Int, Load, Var
from cortex.lower.linear_form import LinearForm
from cortex.schedule.default import Choices
from cortex.schedule.registers import TileChoice


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_counts_equal_the_interpreter(name: str, program: Any) -> None:
    p = program(name)
    rng = Random(name)
    form = p.linearize([p.small(rng) for _ in range(3)])
    counted = run(p.func, form.sizes, form.arrays, p.inputs(form)).counts
    runs = Counter(p.func)(form)
    assert runs.counts() == counted
    work = runs.work()
    assert sum(w.operations for w in work) == sum(counted.flops.values())
    kept = {b.name for b in p.func.buffers if b.scope is not Scope.REGISTER}
    assert sum(w.stored for w in work) == 4 * sum(n for b, n in counted.stores.items() if b in kept)


@pytest.mark.parametrize("choices", [Choices(fuse=False, tile=TileChoice(1, 1)), Choices(tile=TileChoice(2, 3, 4))])
@pytest.mark.parametrize("name", ["tree_gru_words", "gru"])
def test_counts_equal_the_interpreter_at_every_stage(name: str, choices: Choices, program: Any) -> None:
    p = program(name, 5, choices)
    form = p.linearize([p.small(Random(5)) for _ in range(3)])
    for stage in p.stages:
        if stage.func.body:
            counted = run(stage.func, form.sizes, form.arrays, p.inputs(form)).counts
            assert Counter(stage.func)(form).counts() == counted, stage.name


def test_counts_by_group(program: Any) -> None:
    p = program("tree_rnn")
    form = p.linearize([p.small(Random(3))])
    runs = Counter(p.func)(form)
    inner = next(phase for phase in runs.sites.phases if phase.in_groups)
    sites = [s.number for s in runs.sites.sites if s.phase == inner.number]
    recursing = runs.runs[sites].sum(axis=0)[:-1] > 0
    np.testing.assert_array_equal(recursing, form.arrays["group_kind"] == inner.kind)


def test_barriers_and_branches_are_counted() -> None:
    g, n = Var("g"), Var("num_groups")
    store = Store("t", (g,), Float(1.0))
    body = (For("g", Int(0), n, (If(Binary("lt", g, Int(2)), (store, Barrier()), (store,)),)),)
    f = Func("f", ("num_groups",), (), (Buffer("t", "f32", (n,), Scope.SCRATCH),), body)
    form = LinearForm({"num_groups": 5}, {}, {})
    counts = Counter(f)(form).counts()
    assert (counts.barriers, counts.stores["t"]) == (2, 5)
    assert counts == run(f, form.sizes, {}, {}).counts


def test_control_that_depends_on_data_is_refused() -> None:
    positive = Binary("gt", Load("x", (Int(0),)), Float(0.0))
    f = Func("f", ("num_groups",), (), (Buffer("x", "f32", (Int(1),), Scope.SCRATCH),), (If(positive, ()),))
    with pytest.raises(InternalError, match="depends on data"):
        Counter(f)(LinearForm({"num_groups": 1}, {}, {}))
