"""Narrow and NarrowInputs: packed weights, and what they are multiplied with, in 16 and 8 bits."""

from __future__ import annotations

from step_cases.cases import Cases
from step_cases.fuse import FUSED
from step_cases.tile import PACKED, UNROLL

from cortex.schedule.compute_at import ComputeAt
from cortex.schedule.inline import Inline
from cortex.schedule.narrow import Narrow
from cortex.schedule.narrow_inputs import NarrowInputs
from cortex.schedule.pack import Pack
from cortex.schedule.stage import Stage
from cortex.schedule.tile import Tile

OF_BF16 = (*FUSED, NarrowInputs("p_n", "p_k", "x"))
OF_I16 = (*FUSED, NarrowInputs("p_n", "p_k", "x", "i16"))
WITH_TILE = (Pack("p_j", 16), Tile("p_n", "p_j", "p_n", 2, 1, 16, (2, 4)))
TILED = (*PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL))

LEGAL: Cases = {
    "narrow_bf16": (PACKED, Narrow("bf16")),
    "narrow_f16": (PACKED, Narrow("f16", "p_j_packed")),
    "narrow_i8": (PACKED, Narrow("i8")),
    "narrow_i16": (PACKED, Narrow("i16")),
    "narrow_bf16_tiled": (TILED, Narrow("bf16")),
    "narrow_bf16_with_inputs": ((*OF_BF16, *WITH_TILE), Narrow("bf16")),
    "narrow_i8_with_inputs": ((*OF_I16, *WITH_TILE), Narrow("i8")),
    "narrow_i16_with_inputs": ((*OF_I16, *WITH_TILE), Narrow("i16")),
    "narrow_i16_with_inputs_not_tiled": ((*OF_I16, Pack("p_j", 16)), Narrow("i16")),
    "narrow_inputs_bf16": (FUSED, NarrowInputs("p_n", "p_k", "x")),
    "narrow_inputs_i16": ((), NarrowInputs("p_n", "p_k", "x", "i16")),
}

REFUSED: Cases = {
    "narrow_nothing_packed": (FUSED, Narrow("bf16")),
    "narrow_param": (PACKED, Narrow("bf16", "W")),
    "narrow_twice": ((*PACKED, Narrow("bf16")), Narrow("i8", "p_j_packed")),
    "narrow_unknown_type": (PACKED, Narrow("f8")),  # type: ignore[arg-type]
    "narrow_inputs_unknown_type": (FUSED, NarrowInputs("p_n", "p_k", "x", "i8")),  # type: ignore[arg-type]
    "narrow_inputs_twice": (OF_BF16, NarrowInputs("p_n", "p_k", "x")),
    "narrow_inputs_no_sum": (FUSED, NarrowInputs("p_n", "p_j", "x")),
    "narrow_inputs_packed": (PACKED, NarrowInputs("p_n", "p_k", "x")),
    "narrow_inputs_other_nest": ((), NarrowInputs("b_n", "p_k", "x")),
    "inline_narrow": (OF_BF16, Inline("x")),
    "compute_at_narrow": (OF_BF16, ComputeAt("x", "p_n")),
    "stage_narrow": (OF_BF16, Stage("x", "x_n")),
}
