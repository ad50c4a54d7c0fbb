"""Distribute: the inverse of Fuse, where dependences stay within an iteration."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.schedule import namespace

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

FUSED = (Fuse(("p_n", "b_n", "a_n"), 2),)

LEGAL: Cases = {
    "distribute_undoes_fuse": (FUSED, Distribute("p_n", 2)),
    "distribute_columns": (FUSED, Distribute("p_j")),
}

REFUSED: Cases = {
    "distribute_groups": ((), Distribute("g", 1)),
    "distribute_one_statement": ((), Distribute("p_n")),
    "distribute_not_nested": (FUSED, Distribute("p_n", 3)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
