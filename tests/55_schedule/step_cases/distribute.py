"""Distribute: the inverse of Fuse, where dependences stay within an iteration."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse

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
