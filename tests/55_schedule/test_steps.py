"""Every loop step, on the cases of `step_cases`; those for threads are in tests/56_parallel, and for GPUs in 68_gpu."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cortex.ilir.ir import Func
from cortex.ilir.verify import verify
from cortex.ir.step import Step, apply, attempt
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.dense import Dense
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.persist import Persist
from cortex.schedule.replicate import Replicate
from cortex.schedule.schedule import GPU_STEPS, LOOP_STEPS
from cortex.schedule.split import Split
from cortex.schedule.stream import Stream
from cortex.schedule.surround import Surround
from cortex.schedule.tile import Tile
from cortex.schedule.windows import Windows

sys.path.insert(0, str(Path(__file__).parent))
import programs
from checks import Golden, check_legal, check_prints, check_refused
from step_cases import (
    alternate,
    compute_at,
    dense,
    distribute,
    flatten,
    fuse,
    inline,
    interleave,
    layout,
    narrow,
    pack,
    peel,
    reorder,
    split,
    stage,
    tile,
    unroll,
    vector_reduce,
    vectorize,
)
from step_cases.cases import Cases

TABLES = (
    *(fuse, distribute, flatten, split, peel, unroll, reorder, tile, vectorize, vector_reduce),
    *(pack, narrow, dense, inline, stage, compute_at, layout, interleave, alternate),
)
LEGAL: Cases = {name: case for table in TABLES for name, case in table.LEGAL.items()}
REFUSED: Cases = {name: case for table in TABLES for name, case in table.REFUSED.items()}
# see test_surround.py, test_stream.py, test_windows.py, tests/56_parallel
ELSEWHERE = {Surround, Stream, Windows, Parallel, ParallelTrees, Replicate, Alone, PlaceBarriers, Persist}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    before, step = LEGAL[name]
    verify(check_legal(golden, f"schedule/{name}", programs.cell(), before, step))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    before, step = REFUSED[name]
    check_refused(golden, f"schedule/refused_{name}", apply(programs.cell(), before), step)


@pytest.mark.parametrize("cases", [LEGAL, REFUSED], ids=["legal", "refused"])
def test_every_step_has_cases(cases: Cases) -> None:
    assert {type(step) for _, step in cases.values()} == set(LOOP_STEPS) - ELSEWHERE - set(GPU_STEPS)


def test_steps_print_as_python_and_can_be_keys() -> None:
    check_prints(each for before, step in (*LEGAL.values(), *REFUSED.values()) for each in (*before, step))


@pytest.mark.parametrize("columns", [1, 3, 16, 17, 33, 48])
@pytest.mark.parametrize("depth", [1, 4, 7])
def test_tiles_are_exact_for_every_size(columns: int, depth: int) -> None:
    f = programs.cell(columns, min(depth, columns))
    want = programs.states(f)["h"]
    steps: tuple[Step[Func], ...] = (
        *tile.PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, tile.UNROLL), Dense(("t", "u")),
    )  # fmt: skip
    np.testing.assert_allclose(programs.states(apply(f, steps))["h"], want, rtol=1e-12, atol=1e-12)


def test_an_attempt_gives_none_where_the_step_is_refused() -> None:
    f = programs.cell(columns=20)
    assert attempt(f, Split("b_j", 5, "none")) == Split("b_j", 5, "none").apply(f) != f
    assert attempt(f, Split("b_j", 8, "none")) is None
