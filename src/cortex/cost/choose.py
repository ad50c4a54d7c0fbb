"""The automatic scheduler: a small space of schedules, ranked by predicted time.

Nests do not disturb each other much, so their tiles are chosen one nest at a time: every way of tiling is predicted
once for the whole program, and each nest takes the way that was best for its own phase. Whether to fuse and whether
to take input products out of the recursion is decided by the total. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cortex.cost.machine import Machine
from cortex.cost.predict import Predictor
from cortex.ilir.ir import Func
from cortex.lower.linear_form import LinearForm
from cortex.schedule.default import Choices, TileChoice
from cortex.schedule.schedule import Schedule
from cortex.schedule.tile import Tile

TILES = tuple(
    TileChoice(wide, tallest, unroll)
    for wide, tallest in ((4, 9), (4, 4), (4, 2), (2, 12), (2, 6), (1, 14))
    for unroll in (None, 1, 4)
)

Programs = Callable[[Choices], tuple[Func, Schedule]]


@dataclass(frozen=True)
class Candidate:
    """A schedule and the microseconds predicted for the example requests together."""

    choices: Choices
    us: float
    schedule: Schedule


def candidates(programs: Programs, requests: Sequence[LinearForm], machine: Machine) -> list[Candidate]:
    """All schedules considered, best first; `programs` gives the program and the steps for given choices."""
    found: dict[Schedule, Candidate] = {}
    by_nest: dict[str, dict[TileChoice, float]] = {}

    def consider(choices: Choices) -> Candidate:
        f, schedule = programs(choices)
        if schedule not in found:
            predict = Predictor(f, machine)
            predictions = [predict(form) for form in requests]
            found[schedule] = Candidate(choices, sum(p.us for p in predictions), schedule)
            if choices.fuse and choices.inputs_first and not choices.nests:
                for nest, loops in _nests(schedule).items():
                    spent = sum(t.us for p in predictions for t in p.phases if t.phase.loop.startswith(loops))
                    by_nest.setdefault(nest, {})[choices.tile] = spent
        return found[schedule]

    for tile in TILES:
        consider(Choices(tile=tile))
    best = {nest: min(times, key=lambda tile: times[tile]) for nest, times in by_nest.items()}
    mixed = Choices(nests=tuple(sorted(best.items(), key=lambda item: item[0])))
    for choices in (mixed, replace(mixed, inputs_first=False), Choices(inputs_first=False), Choices(fuse=False)):
        consider(choices)
    # What is predicted equal is better left as it is by default.
    return sorted(found.values(), key=lambda c: (round(c.us, 2), c.choices != Choices()))


def _nests(schedule: Schedule) -> dict[str, tuple[str, ...]]:
    """The tiled nests of a schedule, and how the names of the loops that replace them begin."""
    tiles = [s for s in schedule if isinstance(s, Tile)]
    return {t.nest: (t.nest, *(f"{loop}_" for loop in (t.columns, t.rows) if loop)) for t in tiles}
