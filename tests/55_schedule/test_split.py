"""Split: the four tails, on constant and on variable extents."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.schedule import namespace
from cortex.schedule.split import Split
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

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


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
