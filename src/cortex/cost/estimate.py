"""What a lowered program will take once it is scheduled well, without scheduling it.

Cheap enough to compare ways of writing the recursion while a model is compiled. Each nest is priced on its own, for
each group of a request, as the longest of

    arithmetic    its operations, a vector at a time
    weights       what it reads of weights: from far for the first tile of rows, from near for each further tile
    latency       the sums of a tile wait for their last step, however few rows the tile has
    rows          rows of tables, inputs and states, from where they lie

Several threads share the columns of a nest and wait for each other where a product needs all columns of another; or
they share its nodes, and wait after each group; or each has structures of its own and never waits. `predict` prices a
scheduled program in detail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.count import Counter
from cortex.cost.machine import Machine
from cortex.cost.parts import Part, parts_of
from cortex.ilir.ir import Func
from cortex.lower.linear_form import LinearForm
from cortex.schedule.parallel_default import Sharing
from cortex.schedule.registers import Registers

Array = npt.NDArray[Any]
NEST_NS = 15.0
"""Entering a nest: its bounds, its first lines, its loops."""


@dataclass(frozen=True)
class Estimate:
    """Microseconds of a request in all, by nest, and waiting for other threads."""

    nests: tuple[float, ...]
    waiting: float

    @property
    def us(self) -> float:
        """Everything."""
        return sum(self.nests) + self.waiting


class Estimator:
    """Estimates requests for one lowered program on one machine."""

    def __init__(self, f: Func, machine: Machine) -> None:
        self.func, self.machine = f, machine
        self.counter = Counter(f)
        self.parts = parts_of(self.counter.sites, Registers(machine.registers, machine.lanes, machine.broadcasts))

    def __call__(self, form: LinearForm, threads: int = 1, sharing: Sharing = "columns") -> Estimate:
        """What the request will take on `threads` threads."""
        if sharing == "trees":
            threads = max(1, min(threads, form.sizes["num_roots"]))
        runs = self.counter(form).runs
        rows = [runs[p.rows_site] for p in self.parts]
        used = [(p, n) for p, n in zip(self.parts, rows, strict=True)]
        whole = float(sum(p.weights for p, n in used if n.any()))
        inside = float(sum(p.weights for p, n in used if p.phase.in_groups and n.any()))
        nests = tuple(
            float(self._nest(p, n, runs, inside if p.phase.in_groups else whole, threads, sharing).sum()) / 1e3
            for p, n in used
        )
        return Estimate(nests, self._waiting(used, threads, sharing) / 1e3)

    def _nest(self, p: Part, n: Array, runs: Array, distance: float, threads: int, sharing: Sharing) -> Array:
        """Nanoseconds of a nest by group."""
        m = self.machine
        # A thread has a share of the columns of every row, or all columns of a share of the rows.
        by_columns = threads > 1 and sharing == "columns"
        columns = 1 / threads if by_columns else 1.0
        mine = n if threads == 1 or by_columns else -(-n // threads)
        share = columns * np.divide(mine, n, out=np.zeros(len(n)), where=n > 0)
        tiles = -(-mine // p.height)
        busy = sum((runs[site] * times for site, times in p.work), np.zeros(len(n))) * m.fma
        weights = p.weights * columns
        read = weights * ((tiles > 0) / m.rate(distance * columns) + np.maximum(tiles - 1, 0) / m.rate(p.panel))
        moved = sum((runs[r.site] * r.bytes / m.rate(max(r.chosen_from, m.l1)) for r in p.rows), np.zeros(len(n)))
        waited = tiles * p.links * columns * m.chain
        longest = np.maximum.reduce([busy * share, read, waited, moved * share])
        return np.asarray(longest + NEST_NS * (n > 0))

    def _waiting(self, used: list[tuple[Part, Array]], threads: int, sharing: Sharing) -> float:
        """Nanoseconds at barriers."""
        if threads == 1 or sharing == "trees" or not used:
            return 0.0
        levels = np.max([p.level * (n > 0) for p, n in used], axis=0)
        return self.machine.barrier * float((levels if sharing == "columns" else np.minimum(levels, 1)).sum() + 1)
