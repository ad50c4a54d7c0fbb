"""The composite step Tile is a sequence of the primitives: same results interpreted, same bits compiled."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from cortex.codegen.llvm.run import run as run_compiled
from cortex.codegen.target import Target
from cortex.ilir.ir import Func
from cortex.ilir.verify import verify
from cortex.ir.step import Step, apply
from cortex.passes.pipeline import PASSES, run
from cortex.schedule.distribute import Distribute
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.stage import Stage
from cortex.schedule.tile import Tile
from cortex.schedule.unroll import Unroll
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
import programs

COMPOSITE: tuple[Step[Func], ...] = (Tile("p_n", "p_j", "p_n", 4, 1, 4, (1, 1, 1, 1)),)
ROWS_FIRST: tuple[Step[Func], ...] = (Tile("p_n", "p_j", "p_n", 4, 1, 4, (1, 1, 1, 1), rows_first=True),)
PRIMITIVES: tuple[Step[Func], ...] = (
    Split("p_j", 4, "none"),
    Split("p_n", 4, "cases"),
    Reorder(("p_n_o", "p_j_o", "p_n_i", "p_j_i")),  # a tile of 4 rows x 4 columns
    Stage("t", "p_j_o"),  # its sums in registers
    Distribute("p_n_i", 2),  # start values apart from the sums
    Reorder(("p_k", "p_n_i_1", "p_j_i_4")),  # all sums of the tile for one k, then the next
    *(Unroll(loop) for loop in ("p_n_i", "p_n_i_1", "t_c0")),
    *(Vectorize(loop, 4) for loop in ("p_j_i", "p_j_i_4", "t_c1")),
)


def compiled(f: Func) -> Any:
    sizes, index, params = programs.request(f)
    single = {name: value.astype(np.float32) for name, value in params.items()}
    return run_compiled(run(PASSES, f), Target.host(), sizes, index, single)["h"]


def test_tile_is_a_sequence_of_primitives() -> None:
    f = programs.cell()
    tiled, primitive = apply(f, COMPOSITE), apply(f, PRIMITIVES)
    verify(primitive)
    want = programs.states(f)["h"]
    np.testing.assert_array_equal(programs.states(tiled)["h"], want)
    np.testing.assert_array_equal(programs.states(primitive)["h"], want)
    bits = compiled(f)
    assert np.abs(bits - want).max() < 1e-5
    np.testing.assert_array_equal(compiled(tiled), bits)
    np.testing.assert_array_equal(compiled(primitive), bits)


def test_rows_may_run_outside_columns() -> None:
    f = programs.cell()
    rows_first = apply(f, ROWS_FIRST)
    verify(rows_first)
    np.testing.assert_array_equal(programs.states(rows_first)["h"], programs.states(f)["h"])
    np.testing.assert_array_equal(compiled(rows_first), compiled(f))
