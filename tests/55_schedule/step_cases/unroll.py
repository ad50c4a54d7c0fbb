"""Unroll: constant extents as they are, others by a factor."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.unroll import Unroll
from cortex.schedule.vectorize import Vectorize

LEGAL: Cases = {
    "unroll": ((), Unroll("p_k")),
    "unroll_by_two": ((), Unroll("p_k", 2)),
    "unroll_rows": ((), Unroll("b_n", 2)),
}

REFUSED: Cases = {
    "unroll_variable_extent": ((), Unroll("p_n")),
    "unroll_vectorized": ((Vectorize("b_j", 16),), Unroll("b_j_l")),
    "unroll_by_zero": ((), Unroll("p_n", 0)),
}
