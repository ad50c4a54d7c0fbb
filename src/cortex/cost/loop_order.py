"""Which loop around the register tiles of a model's product is outside: blocks of columns, or tiles of rows.

What is read again, and from how far, is said by the same count of lines as for primitives (`reuse.movement`):

    for blocks of columns: for tiles of rows        a block's weights serve all rows; all rows are read for every block
    for tiles of rows: for blocks of columns        a tile's rows serve all columns; all weights are read for every tile

Rows are nodes, whose number differs from group to group, so both are scored on the groups of typical requests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.machine import Machine
from cortex.cost.register_tile import step_limits
from cortex.cost.reuse import LINE, Loop, Use, movement, moving_ns, total_ns
from cortex.ir.scalar import Var
from cortex.schedule.registers import SumsNest

LENGTHS = 8
"""Numbers of rows that are looked at: those that most rows are in groups of."""
GAIN = 0.98
"""Rows go outside where that is predicted to take less than this share of the time."""

_NODE, _COLUMN = Var("n"), Var("j")
_INPUTS, _WEIGHTS, _RESULTS = Use("x", (_NODE,)), Use("w", (_COLUMN,)), Use("h", (_NODE, _COLUMN))


def rows_go_outside(m: Machine, nest: SumsNest, tile: tuple[int, int], rows: npt.NDArray[Any]) -> bool:
    """Is a nest that is run for groups of `rows` rows predicted to be faster with its rows outside its columns?"""
    height, vectors = tile
    lengths, times = np.unique(rows[rows > height], return_counts=True)  # one tile of rows has no loop
    if not lengths.size or nest.columns <= vectors * m.lanes:
        return False
    most = np.argsort(lengths * times)[-LENGTHS:]
    spent = [0.0, 0.0]
    for length, count in zip(lengths[most].tolist(), times[most].tolist(), strict=True):
        for rows_first in (False, True):
            spent[rows_first] += count * nest_ns(m, nest, tile, length, rows_first)
    return spent[True] < GAIN * spent[False]


def nest_ns(m: Machine, nest: SumsNest, tile: tuple[int, int], rows: int, rows_first: bool) -> float:
    """Nanoseconds of a nest on `rows` rows: its tiles' own, and those of bringing data to them.

    Most of what comes from caches is hidden behind the sums. What comes from memory is not: a tile waits for its rows.
    """
    height, vectors = tile
    width = vectors * m.lanes
    by_rows, by_columns = Loop("n", height, -(-rows // height)), Loop("j", width, -(-nest.columns // width))
    loops = (by_rows, by_columns) if rows_first else (by_columns, by_rows)
    moved = movement(
        loops,
        {"n": min(height, rows), "j": min(width, nest.columns)},
        {"n": rows, "j": nest.columns},
        (_INPUTS, _WEIGHTS, _RESULTS),
        lambda use, box: _lines(nest, use, dict(box)),
    )
    limits = step_limits(m, rows / by_rows.trips, vectors, nest.sums, nest.weights, nest.broadcasts)
    cached = m.reads[-2][0]
    near, far = ([each for each in moved if (each.distance > cached) == is_far] for is_far in (False, True))
    computing = by_rows.trips * by_columns.trips * nest.steps * max(limits)
    return total_ns(computing, moving_ns(near, m)) + moving_ns(far, m)


def _lines(nest: SumsNest, use: Use, box: dict[str, int]) -> int:
    """The lines of an array that a box of rows and columns touches: inputs and results by rows, weights by panels."""
    across = -(-4 * box["j"] // LINE)
    if use is _INPUTS:
        return box["n"] * nest.broadcasts * -(-4 * nest.steps // LINE)
    return nest.steps * nest.weights * across if use is _WEIGHTS else box["n"] * nest.sums * across
