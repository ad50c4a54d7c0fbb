"""The cost of PolyScientist as published: working sets of dependences, packed into caches, times latencies.

Whatever touches data that was touched before depends on it, reads on reads included. In a nest of loops around a
kernel, each loop that an array does not depend on makes such dependences: the nearest target is the next iteration
of the loop, the farthest its last. What is touched between source and target is the least and the greatest working
set of the dependence. The sets are placed into the caches, smallest first, each level until it is full:

    cost = sum over levels of (bytes of the sets placed there) * (latency of the level)

Of equal costs the one with less (bytes / bandwidth) is better. It is kept as a baseline; `reuse` is the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cortex.cost.reuse import LINE, Lines, Loop, Use


@dataclass(frozen=True)
class Hierarchy:
    """Caches, nearest first, then memory: sizes of the caches in bytes, latencies in cycles, rates in GB/s."""

    sizes: tuple[int, ...]
    latencies: tuple[float, ...] = (5.0, 14.0, 70.0, 200.0)
    rates: tuple[float, ...] = (300.0, 100.0, 25.0, 12.0)


def working_sets(
    loops: tuple[Loop, ...], tile: Mapping[str, int], extents: Mapping[str, int], uses: tuple[Use, ...], lines: Lines
) -> list[int]:
    """Bytes of the least and greatest working set of every dependence, smallest first."""
    box, found = dict(tile), list[int]()

    def touched() -> int:
        return LINE * sum(lines(use, tuple(sorted(box.items()))) for use in uses)

    for loop in reversed(loops):
        reused = [use for use in uses if loop.var not in use.variables]
        least = touched()
        box[loop.var] = min(extents[loop.var], max(box[loop.var], loop.step) * loop.trips)
        found += [size for _ in reused for size in (least, touched())]
    return sorted(found)


def placed(sets: list[int], h: Hierarchy) -> tuple[int, ...]:
    """Bytes of working sets in each level, packed greedily; what fits no cache is in memory."""
    levels, level = [0] * (len(h.sizes) + 1), 0
    for size in sorted(sets):
        while level < len(h.sizes) and levels[level] + size > h.sizes[level]:
            level += 1
        levels[level] += size
    return tuple(levels)


def published_cost(levels: tuple[int, ...], h: Hierarchy) -> tuple[float, float]:
    """The cost of working sets in levels, and what decides between equal costs."""
    by_latency = sum(size * latency for size, latency in zip(levels, h.latencies, strict=True))
    return by_latency, sum(size / rate for size, rate in zip(levels, h.rates, strict=True))
