"""Vectorize: into the padding of rows, or exactly."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.vectorize import Vectorize

LEGAL: Cases = {
    "vectorize_padded": ((), Vectorize("b_j", 16)),
    "vectorize_exact": ((), Vectorize("l_j", 8)),
}

REFUSED: Cases = {
    "vectorize_not_innermost": ((), Vectorize("p_j", 16)),
    "vectorize_carried": ((), Vectorize("p_k", 4)),
    "vectorize_variable_extent": ((), Vectorize("p_n", 16)),
}
