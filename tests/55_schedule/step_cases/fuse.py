"""Fuse: several nests as one."""

from __future__ import annotations

from step_cases.cases import Cases

from cortex.schedule.fuse import Fuse

FUSED = (Fuse(("p_n", "b_n", "a_n"), 2),)

LEGAL: Cases = {
    "fuse": ((), Fuse(("p_n", "b_n", "a_n"), 2)),
    "fuse_rows_only": ((), Fuse(("p_n", "a_n", "b_n"), 1)),
}

REFUSED: Cases = {
    "fuse_unknown_loop": ((), Fuse(("p_n", "x_n"), 1)),
    "fuse_not_siblings": ((), Fuse(("p_n", "l_j"), 1)),
    "fuse_different_bounds": (FUSED, Fuse(("g", "l_j"), 1)),
    "fuse_across_a_use": ((), Fuse(("p_n", "a_n"), 1)),
    "fuse_too_deep": ((), Fuse(("p_n", "b_n"), 3)),
}
