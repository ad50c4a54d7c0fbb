"""Interleave: temporaries side by side in one buffer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.interleave import Interleave
from cortex.schedule.schedule import namespace
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

LEGAL: Cases = {
    "interleave_rows": ((), Interleave(("t", "u"), 1)),
    "interleave_elements": ((), Interleave(("u", "t"), 2)),
}

REFUSED: Cases = {
    "interleave_first": ((), Interleave(("t", "u"), 0)),
    "interleave_states": ((), Interleave(("t", "h"), 1)),
    "interleave_one": ((), Interleave(("t",), 1)),
    "interleave_axis": ((), Interleave(("t", "u"), 3)),
    "interleave_padding": ((Vectorize("b_j", 16),), Interleave(("t", "u"), 2)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
