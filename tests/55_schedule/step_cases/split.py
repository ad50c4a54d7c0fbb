"""Split: the four tails, on constant and on variable extents."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.split import Split
from cortex.schedule.vectorize import Vectorize

LEGAL: Cases = {
    "split_guard": ((), Split("p_j", 8)),
    "split_guard_rows": ((), Split("p_n", 4, "guard")),
    "split_peel": ((), Split("p_j", 8, "peel")),
    "split_peel_rows": ((), Split("p_n", 4, "peel")),
    "split_cases": ((), Split("p_j", 8, "cases")),
    "split_cases_rows": ((), Split("p_n", 3, "cases")),
    "split_none": ((), Split("p_j", 5, "none")),
    "split_exact_needs_no_guard": ((), Split("p_j", 4, "guard")),
    "split_longer_than_the_loop": ((), Split("p_k", 8, "peel")),
}

REFUSED: Cases = {
    "split_none_rows": ((), Split("p_n", 8, "none")),
    "split_none_constant": ((), Split("p_j", 8, "none")),
    "split_by_zero": ((), Split("p_j", 0)),
    "split_vectorized": ((Vectorize("b_j", 16),), Split("b_j_l", 4)),
    "split_unknown_loop": ((), Split("x", 4)),
    "split_unknown_tail": ((), Split("p_j", 8, "mask")),  # type: ignore[arg-type]
}
