"""Flatten: loops that stand directly inside each other as one."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.flatten import Flatten
from cortex.schedule.split import Split
from cortex.schedule.vectorize import Vectorize

BLOCKS = (Split("p_j", 5, "none"),)

LEGAL: Cases = {
    "flatten": (BLOCKS, Flatten(("p_j_o", "p_j_i"))),
    "flatten_three": ((*BLOCKS, Split("p_j_o", 2, "none")), Flatten(("p_j_o_o", "p_j_o_i", "p_j_i"))),
}

REFUSED: Cases = {
    "flatten_rows": ((), Flatten(("p_n", "p_j"))),
    "flatten_not_nested": ((), Flatten(("p_j", "p_k"))),
    "flatten_inside_out": (BLOCKS, Flatten(("p_j_i", "p_j_o"))),
    "flatten_one": ((), Flatten(("p_j",))),
    "flatten_vectorized": ((Split("b_j", 4, "none"), Vectorize("b_j_i", 4)), Flatten(("b_j_o", "b_j_i"))),
}
