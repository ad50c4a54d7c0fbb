"""Inline: a temporary's expression in place of its reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex.schedule.fuse import Fuse
from cortex.schedule.inline import Inline
from cortex.schedule.schedule import namespace
from cortex.schedule.split import Split

sys.path.insert(0, str(Path(__file__).parent))
from checks import Cases, Golden, check_legal, check_prints, check_refused

FUSED = (Fuse(("p_n", "b_n", "a_n"), 2),)

LEGAL: Cases = {
    "inline": ((), Inline("u")),
    "inline_fused": (FUSED, Inline("u")),
}

REFUSED: Cases = {
    "inline_a_sum": ((), Inline("t")),
    "inline_a_state": ((), Inline("h")),
    "inline_a_param": ((), Inline("b")),
    "inline_unknown": ((), Inline("x")),
    "inline_read_in_other_loops": ((Split("a_n", 4),), Inline("u")),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, golden: Golden) -> None:
    check_legal(name, LEGAL, golden)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, golden: Golden) -> None:
    check_refused(name, REFUSED, golden)


def test_prints_as_python() -> None:
    check_prints((step for _, step in (*LEGAL.values(), *REFUSED.values())), namespace())
