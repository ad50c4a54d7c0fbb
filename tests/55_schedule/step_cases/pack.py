"""Pack: weights in the order in which they are read."""

from __future__ import annotations

from step_cases.cases import Cases
from step_cases.fuse import FUSED

from cortex.schedule.pack import Pack

LEGAL: Cases = {
    "pack": (FUSED, Pack("p_j", 16)),
    "pack_wide": (FUSED, Pack("p_j", 32)),
}

REFUSED: Cases = {
    "pack_nothing_to_pack": ((), Pack("b_j", 16)),
    "pack_rows": ((), Pack("p_n", 16)),
}
