"""Inline: a temporary's expression in place of its reads."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.fuse import Fuse
from cortex.schedule.inline import Inline
from cortex.schedule.split import Split

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
