"""Interleave: temporaries side by side in one buffer."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.interleave import Interleave
from cortex.schedule.vectorize import Vectorize

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
