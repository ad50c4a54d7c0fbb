"""Parallel, Replicate, Alone, PlaceBarriers, Persist: goldens of before and after, equality, races, and refusals."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cortex.errors import InternalError
from cortex.ilir.ir import Barrier, Buffer, For, Func, If, LoopKind, Scope, Store
from cortex.ilir.verify import verify
from cortex.ir.node import rewrite, walk
from cortex.ir.scalar import Binary, Int, Load, Var
from cortex.ir.step import apply
from cortex.schedule.alternate import Alternate
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.dense import Dense
from cortex.schedule.fuse import Fuse
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.persist import Persist
from cortex.schedule.replicate import Replicate
from cortex.schedule.tile import Tile
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "55_schedule"))
import programs
from checks import Golden, check_legal, check_prints, check_refused
from races import races
from step_cases.cases import Cases, Steps

SIZES = {"num_nodes": 14, "num_groups": 3, "max_group": 9}
INDEX = {"group_start": [12, 3, 0], "group_len": [1, 9, 3], "child": [3, 7, 11, *[12] * 9, 13, 0]}

TILED: Steps = (
    Fuse(("p_n", "b_n", "a_n"), 2), Pack("p_j", 8), Tile("p_n", "p_j", "p_n", 3, 2, 4, (2, 1, 1)), Dense(("t", "u")),
)  # fmt: skip
COLUMNS: Steps = (Parallel("p_j"), Parallel("b_j"), Parallel("a_j"), Parallel("l_j"))
TURNED: Steps = (Alternate("p_j", "g"), Alternate("b_j", "b_n"), Alternate("a_j", "g"))

LEGAL: Cases = {
    "columns": ((), Parallel("p_j")),
    "grain": ((), Parallel("p_j", 4)),
    "rows": ((), Parallel("b_n")),
    "column_blocks": (TILED, Parallel("p_j_o")),
    "row_tiles": (TILED, Parallel("p_n_o")),
    "turned": ((*TILED, Alternate("p_j_o", "g")), Parallel("p_j_o")),
    "turned_grain": ((Alternate("p_j", "g"),), Parallel("p_j", 4)),
    "alone": ((Parallel("p_j"), Parallel("a_j")), Alone()),
    "barriers_columns": (COLUMNS, PlaceBarriers()),
    "barriers_rows": ((Parallel("p_n"), Parallel("b_n"), Parallel("a_j"), Alone()), PlaceBarriers()),
    "barriers_tiled": ((*TILED, Parallel("p_j_o"), Alone()), PlaceBarriers()),
    "barriers_turned": ((*COLUMNS, *TURNED), PlaceBarriers()),
    "replicate": ((), Replicate(("t",))),
    "replicate_both": ((Fuse(("p_n", "b_n"), 2),), Replicate(("t", "u"))),
    "alone_replicated": ((Replicate(("t",)), Parallel("a_j")), Alone()),
    "alone_nothing_shared_out": ((Replicate(("t",)),), Alone()),
    "barriers_replicated": ((Replicate(("t",)), *COLUMNS[1:]), PlaceBarriers()),
    "persist": ((*TILED, Parallel("p_j_o"), Alone(), PlaceBarriers()), Persist("p_j_packed")),
}

REFUSED: Cases = {
    "reduction": ((), Parallel("p_k")),
    "groups": ((), Parallel("g")),
    "unknown_loop": ((), Parallel("x")),
    "nested": ((Parallel("p_j"),), Parallel("p_n")),
    "inside": ((Parallel("p_n"),), Parallel("p_j")),
    "grain": ((), Parallel("p_j", 3)),
    "vectorized": ((Vectorize("b_j", 4),), Parallel("b_j_l")),
    "replicated": ((Replicate(("t",)),), Parallel("p_j")),
    "replicated_trees": ((Dense(("t", "u")), Replicate(("t",))), ParallelTrees()),
    "replicate_state": ((), Replicate(("h",))),
    "replicate_unknown": ((), Replicate(("x",))),
    "replicate_shared_out": ((Parallel("p_j"),), Replicate(("t",))),
    "replicate_with_others": ((Fuse(("p_n", "b_n"), 2),), Replicate(("t",))),
    "alone_mixed": ((Replicate(("u",)), Fuse(("b_n", "a_n"), 2), Parallel("p_j")), Alone()),
    "written_by_all": ((Parallel("p_j"),), PlaceBarriers()),
    "persist_state": ((), Persist("h")),
    "persist_everybody": (TILED, Persist("p_j_packed")),
    "persist_rows": ((*TILED, Parallel("p_n_o")), Persist("p_j_packed")),
}


def prepared(steps: Steps) -> Func:
    return apply(programs.cell(20, 6), steps)


@pytest.mark.parametrize("name", LEGAL)
def test_legal_step(name: str, golden: Golden) -> None:
    before, step = LEGAL[name]
    g = check_legal(golden, f"parallel/{name}", prepared(()), before, step)
    if isinstance(step, PlaceBarriers | Persist):
        verify(g)
        assert all(races(g, SIZES, INDEX, threads) == [] for threads in (2, 3, 7))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_step(name: str, golden: Golden) -> None:
    before, step = REFUSED[name]
    check_refused(golden, f"parallel/refused_{name}", prepared(before), step)


def test_every_step_for_threads_has_cases() -> None:
    assert {type(step) for _, step in LEGAL.values()} == {Parallel, Replicate, Alone, PlaceBarriers, Persist}
    refused = {Parallel, ParallelTrees, Replicate, Alone, PlaceBarriers, Persist}
    assert {type(step) for _, step in REFUSED.values()} == refused


def test_steps_print_as_python_and_can_be_keys() -> None:
    check_prints(each for before, step in (*LEGAL.values(), *REFUSED.values()) for each in (*before, step))


def test_copies_share_no_cache_line(golden: Golden) -> None:
    f = prepared(())
    f = replace(f, buffers=tuple(replace(b, align=1) if b.name == "t" else b for b in f.buffers))
    check_refused(golden, "parallel/refused_replicate_narrow_rows", f, Replicate(("t",)))


def test_threads_write_copies_whole() -> None:
    f = prepared((Parallel("p_j"), Alone()))
    copied = replace(f, buffers=tuple(replace(b, scope=Scope.COPIED) if b.name == "t" else b for b in f.buffers))
    with pytest.raises(InternalError, match="a thread writes a part of copied buffer 't'"):
        verify(copied)


def test_what_every_thread_computes_needs_fewer_barriers() -> None:
    steps = (*COLUMNS[1:], Alone(), PlaceBarriers())
    shared, copied = prepared((COLUMNS[0], *steps)), prepared((Replicate(("t",)), *steps))
    assert copied.body != shared.body
    assert sum(isinstance(n, Barrier) for n in walk(copied)) <= sum(isinstance(n, Barrier) for n in walk(shared))


def test_placing_barriers_twice_changes_nothing() -> None:
    f = prepared((*COLUMNS, PlaceBarriers()))
    assert PlaceBarriers().apply(f) == f


def test_a_turned_loop_has_the_barriers_of_one_that_is_not() -> None:
    turned, plain = (prepared((*COLUMNS, *turns, Alone(), PlaceBarriers())) for turns in (TURNED, ()))
    assert rewrite(turned, lambda n: replace(n, turned=None) if isinstance(n, For) else n) == plain != turned


def test_the_default_is_shared_out_without_races() -> None:
    f = prepared(TILED)
    steps = parallel_schedule(f, 2, least_work=0)
    assert Parallel("p_j_o") in steps
    assert PlaceBarriers() in steps
    assert all(races(apply(f, steps), SIZES, INDEX, threads) == [] for threads in (2, 3))
    assert parallel_schedule(f, 1, least_work=0) == ()
    assert parallel_schedule(f, 2) == ()  # too little to do


@pytest.mark.parametrize(("ahead", "shared"), [(True, "c_i"), (False, "c_j")], ids=["ahead", "in_groups"])
def test_rows_copied_ahead_are_shared_out_in_stretches(ahead: bool, shared: str) -> None:
    n, i, j, nodes = Var("n"), Var("c_i"), Var("c_j"), Var("num_nodes")
    copied = Store("M", (n, i, j), Load("x", (n, i, j)))
    nest = For("n", Int(0), nodes, (For("c_i", Int(0), Int(8), (For("c_j", Int(0), Int(8), (copied,)),)),))
    shape = (nodes, Int(8), Int(8))
    buffers = (Buffer("x", "f32", shape, Scope.FIELD), Buffer("M", "f32", shape, Scope.STATE))
    arm = If(Binary("eq", Var("g"), Int(0)), (nest,))
    body = nest if ahead else For("g", Int(0), Var("num_groups"), (arm,))
    f = Func("copies", ("num_nodes", "num_groups"), (), buffers, (body,))
    assert Parallel(shared) in parallel_schedule(f, 2, least_work=0)


def test_verify_knows_threads() -> None:
    f = prepared((Parallel("p_j"),))
    with pytest.raises(InternalError, match="every thread writes state buffer 'h'"):
        verify(f)
    nested = rewrite(f, lambda n: For(n.var, n.lo, n.hi, n.body, LoopKind.PARALLEL) if _is(n, "p_n") else n)
    with pytest.raises(InternalError, match="parallel loop 'p_j' is inside parallel loop 'p_n'"):
        verify(Alone().apply(nested))
    waiting = rewrite(f, lambda n: For(n.var, n.lo, n.hi, (*n.body, Barrier()), n.kind) if _is(n, "p_j") else n)
    with pytest.raises(InternalError, match="barrier inside parallel loop 'p_j'"):
        verify(Alone().apply(waiting))


def _is(n: object, loop: str) -> bool:
    return isinstance(n, For) and n.var == loop
