"""Reorder: which loops may change places, and that sums keep their order."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.distribute import Distribute
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.vectorize import Vectorize

LEGAL: Cases = {
    "reorder_rows_and_columns": ((), Reorder(("b_j", "b_n"))),
    "reorder_sum_outside": ((Distribute("p_n", 2),), Reorder(("p_k", "p_n_1", "p_j_1"))),
    "reorder_moves_the_condition_inside": ((Split("b_n", 4),), Reorder(("b_n_o", "b_j", "b_n_i"))),
}

REFUSED: Cases = {
    "reorder_past_a_branch": ((), Reorder(("p_n", "g"))),
    "reorder_not_perfect": ((), Reorder(("p_k", "p_j"))),
    "reorder_one_loop": ((), Reorder(("p_j",))),
    "reorder_split_sum": ((Distribute("p_n", 2), Split("p_k", 2, "guard")), Reorder(("p_k_i", "p_k_o"))),
    "reorder_vectorized": ((Vectorize("b_j", 16),), Reorder(("b_j_l", "b_j_o"))),
}
