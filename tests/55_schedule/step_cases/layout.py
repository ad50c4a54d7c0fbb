"""Layout: temporaries with their dimensions in another order."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.interleave import Interleave
from cortex.schedule.layout import Layout
from cortex.schedule.vectorize import Vectorize

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
