"""Whole trees on threads: before and after, equality, races, refusals, policies, structures that share nodes."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.errors import ScheduleError
from cortex.ilir.interp import run
from cortex.ilir.ir import Barrier, For, Func, Scope, Store
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import rewrite, walk
from cortex.ir.scalar import Float, Index, Int, Var
from cortex.ir.step import Step, apply
from cortex.poly.bounds import in_bounds
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.refactor import Refactor
from cortex.recursion.unroll import UnrollRecursion
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.dense import Dense
from cortex.schedule.fuse import Fuse
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.tile import Tile

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "55_schedule"))
import programs
from races import races

Build = Callable[..., tuple[Any, list[Any]]]
Golden = Callable[[str, str], None]
Steps = tuple[Step[Func], ...]

TILED: Steps = (
    Fuse(("p_n", "b_n", "a_n"), 2), Pack("p_j", 8), Tile("p_n", "p_j", "p_n", 3, 2, 4, (2, 1, 1)), Dense(("t", "u")),
)  # fmt: skip

# Two chains and a tree above the last node, which the program itself fills, one part each.
SIZES = {"num_nodes": 10, "num_groups": 7, "max_group": 2, "num_parts": 3}
INDEX = {
    "group_start": np.array([8, 7, 6, 5, 3, 2, 0]),
    "group_len": np.array([1, 1, 1, 1, 2, 1, 2]),
    "child": np.array([2, 2, 3, 5, 5, 9, 7, 9, 9, -1]),
    "part_group": np.array([0, 1, 3, 7]),
}

LEGAL: dict[str, Steps] = {"lowered": (), "dense": (Dense(("t", "u")),), "tiled": TILED}

REFUSED: dict[str, tuple[Steps, Step[Func]]] = {
    "not_the_groups": ((), ParallelTrees("p_n")),
    "unknown_loop": ((), ParallelTrees("x")),
    "parallel_inside": ((Parallel("p_j"),), ParallelTrees()),
    "twice": ((ParallelTrees(),), ParallelTrees()),
    "barrier_inside": ((Parallel("p_j"), Alone(), PlaceBarriers()), ParallelTrees()),
}


def states(f: Func) -> Any:
    """The state after a request of three parts, by the interpreter."""
    return run(f, SIZES, INDEX, programs.request(f)[2]).buffers["h"]


@pytest.mark.parametrize("name", LEGAL)
def test_before_and_after(name: str, golden: Golden) -> None:
    f = apply(programs.cell(20, 6), LEGAL[name])
    g = ParallelTrees().apply(f)
    golden(f"parallel/trees_{name}", f"{ParallelTrees()!r}\n\n-- before --\n{show(f)}\n-- after --\n{show(g)}")
    np.testing.assert_array_equal(states(g), states(f))
    g = apply(g, (Alone(), PlaceBarriers()))
    verify(g)
    assert sum(isinstance(n, Barrier) for n in walk(g)) == 1  # after the leaf, which one thread computes
    for threads in (2, 3, 7):
        assert races(g, SIZES, INDEX, threads) == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    before, step = REFUSED[name]
    f = apply(programs.cell(20, 6), before)
    if name == "barrier_inside":
        f = rewrite(f, lambda n: For(n.var, n.lo, n.hi, n.body) if isinstance(n, For) else n)
    kept = repr(f)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(f)
    assert repr(f) == kept
    golden(f"parallel/refused_trees_{name}", str(refusal.value) + "\n")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("another_part", Int(0)),
        ("another_function", Index("group_start", (Int(0),))),
        ("not_a_child", Index("twin", (Var("a_n"),))),
    ],
)
def test_refused_for_what_it_writes(name: str, row: Any, golden: Golden) -> None:
    def elsewhere(n: Any) -> Any:
        return Store("h", (row, Var("a_j")), Float(0.0)) if isinstance(n, Store) and n.buffer == "h" else n

    f = programs.cell(20, 6)
    f = Func(f.name, f.sizes, f.index_functions, f.buffers, (f.body[0], rewrite(f.body[1], elsewhere)))
    with pytest.raises(ScheduleError) as refusal:
        ParallelTrees().apply(f)
    golden(f"parallel/refused_trees_{name}", str(refusal.value) + "\n")


def test_refused_where_a_copy_would_be_read_outside() -> None:
    f = apply(programs.cell(20, 6), (Dense(("t", "u")),))
    after = For("x_j", Int(0), Int(20), (Store("u", (Int(0), Var("x_j")), Float(0.0)),))
    f = Func(f.name, f.sizes, f.index_functions, f.buffers, (*f.body, after))
    with pytest.raises(ScheduleError, match="'u' has rows per group and is used outside"):
        ParallelTrees().apply(f)


def test_a_write_at_another_part_is_a_race() -> None:
    """The test for races sees what the step refuses."""
    f = apply(programs.cell(20, 6), (ParallelTrees(), Alone(), PlaceBarriers()))
    wrong = rewrite(f, lambda n: Store("h", (Int(0), *n.index[1:]), n.value) if _stores_h_of_groups(n) else n)
    assert races(wrong, SIZES, INDEX, 3) != []


def _stores_h_of_groups(n: Any) -> bool:
    return isinstance(n, Store) and n.buffer == "h" and n.index[0] == Var("a_n")


@pytest.mark.parametrize("name", [n for n in zoo.ENTRIES if not n.endswith("_words")])
def test_models(compiled: Build, name: str) -> None:
    """One barrier before the recursion at most, no races; where that is quick, every access proven in bounds.

    Nodes above leaves of TreeFC read no states: they are computed before the recursion too, behind a barrier.
    """
    fast, _ = compiled(name, 14 if name in ("rntn", "mv_rnn") else 20, 3, 1, "trees")
    few = sorted(
        zoo.load(name).structures(random.Random(3), 12, 50), key=lambda t: fast.linearize(t).sizes["num_nodes"]
    )
    form = fast.linearize(few[:3])
    f = fast.compiled.func
    assert form.sizes["num_parts"] == 3
    assert sum(isinstance(n, Barrier) for n in walk(f)) <= (2 if name == "tree_fc" else 1)
    assert races(f, form.sizes, form.arrays, 3) == []
    if name in ("tree_lstm", "mv_rnn", "dag_rnn"):
        assert [x for x in in_bounds(f, padding=True) if not x.proven] == []


RECURSION: dict[str, tuple[Step[Any], ...]] = {
    "depth": (*ALWAYS, Batch("depth")),
    "agenda": (*ALWAYS, Batch("agenda")),
    "none": (*ALWAYS, Batch("none")),
    "dedup": (*ALWAYS, Dedup()),
    "nothing": (),
    "two levels at a time": (*ALWAYS, UnrollRecursion()),
    "a finish": (*ALWAYS, Refactor()),
}


@pytest.mark.parametrize(
    ("name", "recursion"),
    [
        *product(("tree_rnn", "dag_rnn"), ("depth", "agenda", "none", "dedup", "nothing")),
        ("tree_fc", "two levels at a time"),
        ("simple_tree_gru", "a finish"),
    ],
)
def test_steps_on_the_recursion(compiled: Build, name: str, recursion: str) -> None:
    steps = RECURSION[recursion]
    serial, trees = compiled(name, 20, 1, 6, recursion=steps)
    team, _ = compiled(name, 20, 2, 6, "trees", recursion=steps)
    assert ParallelTrees() in team.schedule.steps
    check_bits(serial, team, trees, zoo.load(name).states)


def check_bits(serial: Any, team: Any, trees: list[Any], states: tuple[str, ...]) -> None:
    for batch in (trees[:1], trees, [*trees[:2], *trees[:3]]):
        want = serial(batch)
        for threads in (1, 2, 3, 8):
            got = team(batch, threads=threads)
            for state in states:
                assert getattr(got.nodes, state).tobytes() == getattr(want.nodes, state).tobytes()
                assert getattr(got, state).tobytes() == getattr(want, state).tobytes()


def test_structures_that_share_nodes(compiled: Build) -> None:
    serial, trees = compiled("tree_lstm", 20, 1, 4)
    team, _ = compiled("tree_lstm", 20, 3, 4, "trees")
    whole = [*trees, trees[0].children[0], trees[2]]
    assert team.linearize(whole).sizes["num_parts"] == 3
    check_bits(serial, team, whole, ("h", "c"))
    assert team.linearize([trees[0], trees[0].children[0]]).sizes["num_parts"] == 1


def test_interpreters_agree(compiled: Build) -> None:
    team, trees = compiled("tree_gru", 10, 2, 3, "trees")
    form = team.linearize(trees)
    assert form.sizes["num_parts"] == 2
    f = team.compiled.func
    params = {b.name: team.weights[b.name] for b in f.buffers if b.scope is Scope.PARAM}
    ilir = run(f, form.sizes, form.arrays, params).buffers["state_h"][form.arrays["order"]]
    got = team(trees).nodes.h
    np.testing.assert_allclose(ilir, got, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(team.interpret(trees)["h"], got, rtol=1e-5, atol=1e-6)


def test_the_default_mapping_is_columns(compiled: Build) -> None:
    f = apply(programs.cell(20, 6), TILED)
    assert parallel_schedule(f, 2, least_work=0) == parallel_schedule(f, 2, "columns", least_work=0)
    assert Parallel("p_j_o") in parallel_schedule(f, 2, "columns", least_work=0)
    assert Parallel("p_n_o") in parallel_schedule(f, 2, "nodes", least_work=0)
    assert parallel_schedule(f, 2, "trees")[0] == ParallelTrees()  # however little there is to do: barriers are few
