"""Narrow: packed weights in 16 and 8 bits."""

from __future__ import annotations

from step_cases.cases import Cases
from step_cases.fuse import FUSED
from step_cases.tile import PACKED, UNROLL

from cortex.schedule.narrow import Narrow
from cortex.schedule.tile import Tile

TILED = (*PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL))

LEGAL: Cases = {
    "narrow_bf16": (PACKED, Narrow("bf16")),
    "narrow_f16": (PACKED, Narrow("f16", "p_j_packed")),
    "narrow_i8": (PACKED, Narrow("i8")),
    "narrow_bf16_tiled": (TILED, Narrow("bf16")),
}

REFUSED: Cases = {
    "narrow_nothing_packed": (FUSED, Narrow("bf16")),
    "narrow_param": (PACKED, Narrow("bf16", "W")),
    "narrow_twice": ((*PACKED, Narrow("bf16")), Narrow("i8", "p_j_packed")),
    "narrow_unknown_type": (PACKED, Narrow("f8")),  # type: ignore[arg-type]
}
