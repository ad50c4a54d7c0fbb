"""Dense: temporaries by their place in the group."""

from __future__ import annotations

from step_cases.cases import Cases
from step_cases.tile import PACKED, UNROLL

from cortex.schedule.dense import Dense
from cortex.schedule.tile import Tile

LEGAL: Cases = {
    "dense": ((), Dense(("t", "u"))),
    "all": ((*PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL)), Dense(("t", "u"))),
}

REFUSED: Cases = {
    "dense_state": ((), Dense(("h",))),
    "dense_no_groups": ((), Dense(("t",), "q")),
}
