"""ComputeAt: a temporary computed where it is used, as much of it as is used there."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.compute_at import ComputeAt
from cortex.schedule.split import Split
from cortex.schedule.vectorize import Vectorize

LEGAL: Cases = {
    "compute_at_element": ((), ComputeAt("u", "a_j")),
    "compute_at_row": ((), ComputeAt("u", "a_n")),
    "compute_at_a_sum": ((), ComputeAt("t", "b_j")),
    "compute_at_columns": ((Split("b_j", 4),), ComputeAt("t", "b_j_o")),
}

REFUSED: Cases = {
    "compute_at_a_state": ((), ComputeAt("h", "p_n")),
    "compute_at_another_loop": ((), ComputeAt("t", "a_n")),
    "compute_at_before": ((), ComputeAt("u", "p_n")),
    "compute_at_padding": ((Vectorize("a_j", 16),), ComputeAt("u", "a_n")),
    "compute_at_vectorized": ((Vectorize("a_j", 16),), ComputeAt("u", "a_j_l")),
}
