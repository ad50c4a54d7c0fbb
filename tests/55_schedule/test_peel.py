"""Peel: iterations off both ends, guarded where the extent is not known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.peel import Peel
from cortex.schedule.schedule import namespace
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

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


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
