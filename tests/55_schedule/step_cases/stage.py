"""Stage: a local copy of the part of a buffer that an iteration uses."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.split import Split
from cortex.schedule.stage import Stage

LEGAL: Cases = {
    "stage_a_sum": ((), Stage("t", "p_j")),
    "stage_a_row": ((), Stage("t", "p_n")),
    "stage_a_weight": ((), Stage("b", "b_n")),
    "stage_a_child": ((), Stage("h", "p_j")),
    "stage_columns": ((Split("b_j", 4),), Stage("u", "b_j_o")),
}

REFUSED: Cases = {
    "stage_rows": ((), Stage("t", "g")),
    "stage_not_used": ((), Stage("u", "p_n")),
    "stage_under_a_condition": ((Split("b_n", 4),), Stage("u", "b_n_i")),
    "stage_unknown": ((), Stage("x", "p_n")),
}
