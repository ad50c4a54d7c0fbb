"""The tile that suits a nest of sums: registers on one side, the rows that groups really have on the other.

A tile takes, for each step of its sums, what `register_tile` says, and, for all its steps, the weights of its columns:
from far for the first tile of rows, from near for the others. Which loop is outside is chosen then (`loop_order`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.estimate import Estimator
from cortex.cost.loop_order import rows_go_outside
from cortex.cost.machine import Machine
from cortex.cost.register_tile import step_limits
from cortex.lower.linear_form import LinearForm
from cortex.schedule.registers import AS_REGISTERS_ALLOW, Registers, SumsNest, TileChoice

Array = npt.NDArray[Any]
CHOICES = (AS_REGISTERS_ALLOW, *(TileChoice(wide, tallest) for wide in (1, 2, 3, 4, 5, 6, 8) for tallest in (14, 6, 3)))
GAIN = 0.97
"""A tile must be predicted to take less than this share of what the largest one that fits takes."""
TILE_NS = 8.0
"""Entering a tile: choosing its case, clearing and storing its sums."""


@dataclass(frozen=True)
class Tiles:
    """Chooses tiles for the nests of one program: `rows` of each nest by group, and how far its weights lie.

    Several `threads` each have columns of their own, so that blocks of them are the outer loop, and all
    threads better have as many: on two threads, 192 columns are two blocks of 96 and not three of 64.
    """

    machine: Machine
    rows: Mapping[str, Array]
    distance: Mapping[str, float]
    threads: int = 1

    @staticmethod
    def of(estimator: Estimator, requests: Sequence[LinearForm], threads: int = 1) -> Tiles:
        """For the nests that an estimator has read and the groups of some requests, each request counting alike."""
        counted = [estimator.counter(form).runs for form in requests]
        inside = float(sum(p.weights for p in estimator.parts if p.phase.in_groups))
        whole = float(sum(p.weights for p in estimator.parts))
        rows = {
            p.phase.loop: np.concatenate([runs[p.rows_site] for runs in counted] or [np.zeros(0, int)])
            for p in estimator.parts
        }
        distance = {p.phase.loop: inside if p.phase.in_groups else whole for p in estimator.parts}
        return Tiles(estimator.machine, rows, distance, threads)

    def __call__(self, nest: SumsNest) -> TileChoice:
        """The best tile for a nest; the largest that fits unless another is clearly better."""
        rows = self.rows.get(nest.name, np.zeros(0, int))
        if not rows.any():
            return AS_REGISTERS_ALLOW
        times = {choice: self.ns(nest, choice, rows) for choice in CHOICES}
        best = min(times, key=lambda choice: times[choice])
        best = best if times[best] < GAIN * times[AS_REGISTERS_ALLOW] else AS_REGISTERS_ALLOW
        if self.threads > 1:
            return best
        m, lengths = self.machine, rows if nest.rows is None else np.full(1, nest.rows)
        tile = Registers(m.registers, m.lanes, m.broadcasts).tile(nest.sums, nest.weights, nest.columns, best)
        return replace(best, rows_first=True) if rows_go_outside(m, nest, tile, lengths) else best

    def _busiest(self, blocks: int, tiles: Array) -> Array:
        """The part of a nest that the thread with most of it has: of its blocks of columns, or else of its rows."""
        shared = np.full(len(tiles), blocks) if blocks >= self.threads else tiles
        return np.asarray(-(-shared // self.threads) / np.maximum(shared, 1))

    def ns(self, nest: SumsNest, choice: TileChoice, rows: Array) -> float:
        """Nanoseconds of the sums of a nest in all groups."""
        m = self.machine
        registers = Registers(m.registers, m.lanes, m.broadcasts)
        height, wide = registers.tile(nest.sums, nest.weights, nest.columns, choice)
        lengths, times = np.unique(rows[rows > 0], return_counts=True)
        if nest.rows is not None:
            lengths, times = np.array([nest.rows]), np.array([(lengths * times).sum()])
        tiles = -(-lengths // height)
        tall = lengths / tiles  # rows are shared out evenly
        whole, rest = divmod(-(-nest.columns // m.lanes), wide)
        far = m.rate(self.distance.get(nest.name, 0.0))
        total = np.zeros(len(lengths))
        for vectors, blocks in ((wide, whole), (rest, 1 if rest else 0)):
            panel = nest.steps * nest.weights * vectors * m.lanes * 4
            sums, issue, chain = step_limits(m, tall, vectors, nest.sums, nest.weights, nest.broadcasts)
            one = nest.steps * np.maximum(np.maximum(sums, issue), chain)
            first, more = np.maximum(one, panel / far), np.maximum(one, panel / m.rate(panel))
            all_rows = first + (tiles - 1) * more + tiles * TILE_NS
            total += blocks * all_rows * self._busiest(blocks, tiles)
        return float((total * times).sum())
