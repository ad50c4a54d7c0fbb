"""Alternate: which loops may run in either direction, and what other steps make of a turned one."""

from __future__ import annotations

from step_cases.cases import Cases
from step_cases.fuse import FUSED
from step_cases.tile import PACKED, UNROLL

from cortex.schedule.alternate import Alternate
from cortex.schedule.distribute import Distribute
from cortex.schedule.flatten import Flatten
from cortex.schedule.fuse import Fuse
from cortex.schedule.peel import Peel
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.stage import Stage
from cortex.schedule.tile import Tile
from cortex.schedule.unroll import Unroll
from cortex.schedule.vectorize import Vectorize

TILED = (*PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 8, UNROLL))
TURNED = (*FUSED, Alternate("p_j", "p_n"))
BOTH = (Alternate("b_j", "g"), Alternate("a_j", "g"))

LEGAL: Cases = {
    "alternate_panels": (TILED, Alternate("p_j_o", "g")),
    "alternate_rows": ((), Alternate("p_n", "g")),
    "alternate_columns_by_rows": ((), Alternate("p_j", "p_n")),
    "alternate_keeps_staged": ((Stage("t", "p_j"),), Alternate("p_j", "g")),
    "alternate_then_split": (TURNED, Split("p_j", 8, "peel")),
    "alternate_then_split_the_other": (TURNED, Split("p_n", 4, "peel")),
    "alternate_then_peel": (TURNED, Peel("p_n")),
    "alternate_then_distribute": ((Fuse(("b_n", "a_n"), 2), Alternate("b_j", "b_n")), Distribute("b_n", 2)),
    "alternate_then_fuse": (BOTH, Fuse(("b_n", "a_n"), 2)),
    "alternate_then_flatten": ((Split("b_j", 4), Alternate("b_j_o", "g")), Flatten(("b_j_o", "b_j_i"))),
    "alternate_then_unroll": (TURNED, Unroll("p_j")),
    "alternate_then_vectorize": ((Alternate("b_j", "b_n"),), Vectorize("b_j", 16)),
    "alternate_then_reorder": ((Alternate("b_j", "g"),), Reorder(("b_j", "b_n"))),
    "alternate_then_tile": ((*FUSED, Alternate("p_n", "g")), Tile("p_n", "p_j", None, 1, 2, 4, (3,))),
}

REFUSED: Cases = {
    "alternate_unrolled": ((Unroll("p_j"),), Alternate("p_j", "g")),
    "alternate_vectorized": ((Vectorize("b_j", 4),), Alternate("b_j_l", "g")),
    "alternate_inside_out": ((), Alternate("p_n", "p_j")),
    "alternate_beside": ((), Alternate("p_j", "b_n")),
    "alternate_by_itself": ((), Alternate("p_j", "p_j")),
    "alternate_a_sum": ((), Alternate("p_k", "g")),
    "alternate_carried": ((Stage("t", "p_j"),), Alternate("p_k", "p_j")),
    "alternate_unknown_loop": ((), Alternate("x", "g")),
    "alternate_by_unknown_loop": ((), Alternate("p_j", "x")),
    "alternate_then_fuse_with_another": (BOTH[:1], Fuse(("b_n", "a_n"), 2)),
    "alternate_then_reorder_inside_out": (TURNED, Reorder(("p_j", "p_n"))),
}
