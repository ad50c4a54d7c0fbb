"""Unroll: constant extents as they are, others by a factor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.schedule import namespace
from cortex.schedule.unroll import Unroll
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

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


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
