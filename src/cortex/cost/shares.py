"""How the time of a request falls on the threads of a team.

A parallel loop of n iterations is done when the thread with most of them is, which runs ceil(n / threads). Where
whole structures are shared out, a group is run by one thread, and all is done when the thread whose groups take
longest is. What is in no parallel loop is run by every thread.

    for p in 0..6 parallel: S                              4 threads: a third of the time of S
    for part in 0..2 parallel: groups 0..5 | 5..8          2 threads: what groups 0..5 or groups 5..8 take
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.count import Runs
from cortex.cost.sites import Sites
from cortex.ilir.ir import LoopKind
from cortex.lower.linear_form import NUM_PARTS, PART_GROUP, LinearForm

Array = npt.NDArray[Any]


class Shares:
    """The parallel loops of one program."""

    def __init__(self, sites: Sites) -> None:
        self.by_parts = any(s.loop is not None and s.loop.hi == NUM_PARTS for s in sites.sites)
        around: list[int] = []  # for each site, the one that is the body of the parallel loop around it, or -1
        for s in sites.sites:
            is_shared = s.loop is not None and s.loop.kind is LoopKind.PARALLEL
            around.append(s.number if is_shared else around[s.parent] if s.parent >= 0 else -1)
        self.inside = np.flatnonzero(np.array(around) >= 0)
        self.body = np.array(around)[self.inside]
        self.entered = np.array([sites.sites[b].parent for b in self.body], int)

    def busiest(self, runs: Runs, threads: int) -> Array:
        """The part of each site's runs that the thread with most of them makes, by group: (sites, groups + 1).

        Where a loop has different numbers of iterations within a group, their average counts.
        """
        counts = runs.runs
        part = np.ones(counts.shape)
        if threads == 1:
            return part
        times, entered = counts[self.body], counts[self.entered]
        iterations = np.divide(times, entered, out=np.ones(times.shape), where=(times > 0) & (entered > 0))
        part[self.inside] = np.ceil(iterations / threads) / iterations
        return part

    def last(self, form: LinearForm, by_group: Array, threads: int) -> Array:
        """For each group, whether the thread that is done last runs it; `by_group` is the time each takes."""
        mine = np.ones(len(by_group), bool)
        if self.by_parts:
            parts, first = form.sizes[NUM_PARTS.name], form.arrays[PART_GROUP.name]
            bounds = first[[t * parts // threads for t in range(threads + 1)]]
            spans = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
            mine[:-1] = False
            mine[max(spans, key=lambda span: float(by_group[span].sum()))] = True
        return mine
