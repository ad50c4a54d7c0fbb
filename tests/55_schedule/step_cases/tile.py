"""Tile: rows by columns at a time, with the sums in registers."""

from __future__ import annotations

from step_cases.cases import Cases
from step_cases.fuse import FUSED

from cortex.schedule.pack import Pack
from cortex.schedule.tile import Tile

UNROLL = (2, 2, 1, 1)
PACKED = (*FUSED, Pack("p_j", 16))

LEGAL: Cases = {
    "tile": (PACKED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL)),
    "tile_two_vectors": (FUSED, Tile("p_n", "p_j", "p_n", 3, 2, 8, UNROLL)),
    "tile_in_registers": (PACKED, Tile("p_n", "p_j", "p_n", 2, 1, 16, UNROLL, (), "registers")),
    "tile_rows_inside": (FUSED, Tile("p_n", "p_j", None, 1, 2, 4, (3,), ("p_n",))),
    "tile_rows_first": (PACKED, Tile("p_n", "p_j", "p_n", 2, 1, 8, UNROLL, rows_first=True)),
    "tile_one_row": (FUSED, Tile("p_n", "p_j", None, 1, 2, 4, (3,))),
}

REFUSED: Cases = {
    "tile_not_nested": ((), Tile("p_n", "b_j", "p_n", 4, 1, 16, UNROLL)),
    "tile_inside_elsewhere": (FUSED, Tile("p_n", "p_j", "p_n", 4, 1, 16, UNROLL, ("g",))),
    "tile_rows_first_without": (FUSED, Tile("p_n", "p_j", None, 1, 1, 16, UNROLL, rows_first=True)),
    "tile_rows_elsewhere": (FUSED, Tile("p_n", "p_j", "g", 4, 1, 16, UNROLL)),
}
