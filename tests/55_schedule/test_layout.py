"""Layout: temporaries with their dimensions in another order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.interleave import Interleave
from cortex.schedule.layout import Layout
from cortex.schedule.schedule import namespace
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

SIDE_BY_SIDE = (Interleave(("t", "u"), 1),)

LEGAL: Cases = {
    "layout": (SIDE_BY_SIDE, Layout("t_u", (0, 2, 1))),
}

REFUSED: Cases = {
    "layout_rows": ((), Layout("t", (1, 0))),
    "layout_param": ((), Layout("W", (1, 0))),
    "layout_wrong_order": ((), Layout("t", (0, 0))),
    "layout_padding": ((*SIDE_BY_SIDE, Vectorize("b_j", 16)), Layout("t_u", (0, 2, 1))),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
