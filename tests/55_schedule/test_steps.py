"""Every step: a golden of before and after, equality under the interpreter, and a refusal that changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cortex.errors import ScheduleError
from cortex.ilir.ir import Func
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.step import Step, apply
from cortex.schedule.dense import Dense
from cortex.schedule.fuse import Fuse
from cortex.schedule.pack import Pack
from cortex.schedule.tile import Tile
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
import programs

Golden = Callable[[str, str], None]

FUSED = (Fuse(("p_n", "b_n", "a_n"), 2),)
PACKED = (*FUSED, Pack("p_j", 16))
UNROLL = (2, 2, 1, 1)

LEGAL: dict[str, tuple[tuple[Step[Func], ...], Step[Func]]] = {
    "fuse": ((), Fuse(("p_n", "b_n", "a_n"), 2)),
    "fuse_rows_only": ((), Fuse(("p_n", "a_n", "b_n"), 1)),
    "pack": (FUSED, Pack("p_j", 16)),
    "pack_wide": (FUSED, Pack("p_j", 32)),
    "tile": (PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL)),
    "tile_two_vectors": (FUSED, Tile("p_n", "p_j", "p_n", 3, 2, 8, UNROLL)),
    "tile_one_row": (FUSED, Tile("p_n", "p_j", None, 1, 2, 4, (3,))),
    "vectorize_padded": ((), Vectorize("b_j", 16)),
    "vectorize_exact": ((), Vectorize("l_j", 8)),
    "vector_reduce": ((), VectorReduce("p_k", 4)),
    "dense": ((), Dense(("t", "u"))),
    "all": ((*PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL)), Dense(("t", "u"))),
}

REFUSED: dict[str, tuple[tuple[Step[Func], ...], Step[Func]]] = {
    "fuse_unknown_loop": ((), Fuse(("p_n", "x_n"), 1)),
    "fuse_not_siblings": ((), Fuse(("p_n", "l_j"), 1)),
    "fuse_different_bounds": (FUSED, Fuse(("g", "l_j"), 1)),
    "fuse_across_a_use": ((), Fuse(("p_n", "a_n"), 1)),
    "fuse_too_deep": ((), Fuse(("p_n", "b_n"), 3)),
    "pack_nothing_to_pack": ((), Pack("b_j", 16)),
    "pack_rows": ((), Pack("p_n", 16)),
    "tile_not_nested": ((), Tile("p_n", "b_j", "p_n", 4, 1, 16, UNROLL)),
    "tile_rows_elsewhere": (FUSED, Tile("p_n", "p_j", "g", 4, 1, 16, UNROLL)),
    "vectorize_not_innermost": ((), Vectorize("p_j", 16)),
    "vectorize_carried": ((), Vectorize("p_k", 4)),
    "vectorize_variable_extent": ((), Vectorize("p_n", 16)),
    "vector_reduce_short": ((), VectorReduce("p_k", 8)),
    "vector_reduce_no_sum": ((), VectorReduce("b_j", 8)),
    "dense_state": ((), Dense(("h",))),
    "dense_no_groups": ((), Dense(("t",), "q")),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_step(name: str, golden: Golden) -> None:
    before, step = LEGAL[name]
    f = apply(programs.cell(), before)
    g = step.apply(f)
    verify(g)
    golden(f"schedule/{name}", f"{step!r}\n\n-- before --\n{show(f)}\n-- after --\n{show(g)}")
    np.testing.assert_allclose(programs.states(g)["h"], programs.states(programs.cell())["h"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_step(name: str, golden: Golden) -> None:
    before, step = REFUSED[name]
    f = apply(programs.cell(), before)
    kept = repr(f)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(f)
    assert repr(f) == kept
    golden(f"schedule/refused_{name}", str(refusal.value) + "\n")


@pytest.mark.parametrize("columns", [1, 3, 16, 17, 33, 48])
@pytest.mark.parametrize("depth", [1, 4, 7])
def test_tiles_are_exact_for_every_size(columns: int, depth: int) -> None:
    f = programs.cell(columns, min(depth, columns))
    want = programs.states(f)["h"]
    steps: tuple[Step[Func], ...] = (*PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL), Dense(("t", "u")))
    np.testing.assert_allclose(programs.states(apply(f, steps))["h"], want, rtol=1e-12, atol=1e-12)


def test_steps_print_as_python_and_can_be_keys() -> None:
    for before, step in [*LEGAL.values(), *REFUSED.values()]:
        for each in (*before, step):
            assert eval(repr(each)) == each
            assert hash(eval(repr(each))) == hash(each)
