"""Cases that random schedules found: what steps once got wrong or let through."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import programs
import pytest

from cortex.errors import ScheduleError
from cortex.ilir.ir import Accumulate, For, Func, Stmt
from cortex.ilir.verify import verify
from cortex.ir.node import rewrite
from cortex.ir.scalar import Index, Int, Load, Var
from cortex.ir.step import Step, apply
from cortex.schedule.compute_at import ComputeAt
from cortex.schedule.dense import Dense
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.peel import Peel
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.stage import Stage
from cortex.schedule.tile import Tile
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))

FUSED = Fuse(("p_n", "b_n", "a_n"), 2)
ROWS = (1, 1, 1, 1)

LEGAL: dict[str, tuple[Step[Func], ...]] = {
    "a tile of a sum that another nest begins": (
        Distribute("p_n", 2),
        Tile("p_n_1", "p_j_1", "p_n_1", 4, 1, 16, ROWS),
    ),
    "one row of such a sum": (Distribute("p_n", 2), Tile("p_n_1", "p_j_1", None, 1, 2, 4, (2,))),
    "tiles of one row": (Tile("b_n", "b_j", "b_n", 1, 1, 4, (1,)), Peel("b_n_o", 0, 1)),
    "blocks of what threads share": (Parallel("p_j"), Split("p_j", 4), Alone()),
    "vectors wider than the panels of packed weights": (
        FUSED,
        Pack("p_j", 4),
        Tile("p_n", "p_j", "p_n", 4, 1, 16, ROWS),
    ),
}

REFUSED: dict[str, tuple[tuple[Step[Func], ...], Step[Func], str]] = {
    "elements of a row are no sum": (
        (Distribute("p_n", 2), Reorder(("p_k", "p_j_1", "p_n_1"))),
        Tile("p_j_1", "p_j_1", None, 1, 1, 4, (1,)),
        "a sum reads what the nest writes",
    ),
    "a tile does not hold conditions": (
        (Split("b_n", 4), Reorder(("b_n_o", "b_j", "b_n_i"))),
        Tile("b_n_i", "b_n_i", None, 1, 1, 4, (1,)),
        "more than sums and stores",
    ),
    "a vector does not hold conditions": ((Split("l_j", 8),), Vectorize("l_j_i", 8), "not an innermost loop"),
    "partial sums are combined by halves": ((), VectorReduce("p_k", 3), "3 is not a power of two"),
    "vectors of nothing": ((), Vectorize("l_j", -1), "a vector cannot have -1 lanes"),
    "tiles of nothing": ((), Tile("p_n", "p_j", "p_n", 2, -1, 4, (1, 1)), "must be at least 1"),
    "tiles that do not know how far to unroll": ((), Tile("p_n", "p_j", "p_n", 2, 1, 4, (1,)), "up to 2"),
    "panels of nothing": ((), Pack("p_j", 0), "a panel cannot have 0 columns"),
    "registers that are filled for what follows": ((Stage("u", "a_n"),), Parallel("u_c0"), "passes values on"),
    "registers that were filled before": ((Stage("u", "a_n"),), Parallel("a_j"), "passes values on"),
    "registers of all threads": ((Parallel("p_j"),), Stage("t", "p_n"), "threads do not share registers"),
    "a nest in registers of all threads": ((Parallel("b_j"),), ComputeAt("t", "b_n"), "threads do not share registers"),
    "nothing to fuse": ((), Fuse(()), "name the loops"),
    "a loop fused with itself": ((), Fuse(("b_n", "b_n")), "each once"),
    "no such buffer": ((), Dense(("x",)), "'x' is not a temporary"),
    "not the loop over groups": ((), Dense(("t",), "p_n"), "'p_n' is not the loop over groups"),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    f = programs.cell()
    g = apply(f, LEGAL[name])
    verify(g)
    np.testing.assert_allclose(programs.states(g)["h"], programs.states(f)["h"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    before, step, reason = REFUSED[name]
    f = apply(programs.cell(), before)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(f)
    assert reason in str(refusal.value)


def test_a_temporary_read_at_a_child_is_not_dense() -> None:
    """The rows of the child's group are gone by then."""

    def at_child(n: object) -> object:
        if isinstance(n, Load) and n.buffer == "t":
            return replace(n, index=(Index("child", (n.index[0],)), *n.index[1:]))
        return n

    f = programs.cell()
    f = replace(f, body=tuple(rewrite(s, at_child) for s in f.body))
    with pytest.raises(ScheduleError, match="'t' is used at rows that may be of another group"):
        Dense(("t",)).apply(f)
    assert Dense(("u",)).apply(f) != f


def test_a_weight_that_the_request_chooses_is_not_packed() -> None:
    """Its row is known only when there is a request, though no loop variable is in it."""

    def chosen(n: object) -> object:
        at_leaf = Index("child", (Int(0),))
        return replace(n, index=(n.index[0], at_leaf)) if isinstance(n, Load) and n.buffer == "W" else n

    f = programs.cell()
    f = replace(f, body=tuple(rewrite(s, chosen) for s in f.body))
    with pytest.raises(ScheduleError, match="no weight depends on the column 'p_j'"):
        Pack("p_j", 4).apply(f)


def test_a_sum_over_the_rows_own_children_is_not_tiled_by_rows() -> None:
    """Every row has its own number of terms."""
    f = programs.cell()
    edges: Stmt = For(
        "e",
        Index("group_len", (Var("b_n"),)),
        Int(20),
        (Accumulate("u", (Var("b_n"), Var("b_j")), "add", Load("b", (Var("e"),))),),
    )

    def with_sum(n: object) -> object:
        return replace(n, body=(edges,)) if isinstance(n, For) and n.var == "b_j" else n

    f = replace(f, body=tuple(rewrite(s, with_sum) for s in f.body))
    with pytest.raises(ScheduleError, match="the bounds of 'e' depend on 'b_n'"):
        Tile("b_n", "b_j", "b_n", 4, 1, 16, ROWS).apply(f)
