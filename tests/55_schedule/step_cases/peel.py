"""Peel: iterations off both ends, guarded where the extent is not known."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.peel import Peel
from cortex.schedule.vectorize import Vectorize

LEGAL: Cases = {
    "peel_front": ((), Peel("p_k")),
    "peel_back": ((), Peel("p_k", 0, 2)),
    "peel_rows": ((), Peel("p_n", 1, 1)),
    "peel_everything": ((), Peel("p_k", 3, 2)),
}

REFUSED: Cases = {
    "peel_too_many": ((), Peel("p_k", 4, 2)),
    "peel_nothing": ((), Peel("p_k", 0, 0)),
    "peel_vectorized": ((Vectorize("b_j", 16),), Peel("b_j_l")),
}
