"""Stage: a local copy of the part of a buffer that an iteration uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.schedule import namespace
from cortex.schedule.split import Split
from cortex.schedule.stage import Stage

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

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


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
