"""Timing several systems on the same requests, in one process, in turns.

In each turn one system runs all batches; then the next system has its turn. Turns, not calls, alternate: a
system meets its own weights in the caches, as it would when serving, and slow drifts of the machine meet all
systems. A system that has used more than its share of the time so far sits out a turn, so that slow systems do
not take all repetitions from fast ones. Every call gets tree objects of its own, built before, outside the timed part,
for eight calls at a time: building evicts from the caches what calls use, and takes longer than some calls.

Threads of one system must not take processors from the next one. Those of OpenMP go on looking for work for
milliseconds after a call (libgomp for 5 to 7 ms here, other libraries for 200), so a turn starts when the process has
come to rest. That puts every system's own threads to sleep, too, and the processors: on virtual machines the next 0.1 s
are slower by a fifth, on every other rest or so. A system that serves does not rest, so the first 0.1 s of a turn are
not timed; and a turn goes on for 0.2 s, with all batches again, or systems would wait longer than they run.

A turn at whose end the machine is slow (`quiet`) does not count and is had again, as long as there is time for that.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Run = Callable[[list[Any]], Any]
IsSlow = Callable[[], bool]
MIN_TURNS = 3
REST = 0.01  # seconds over which a process at rest uses next to no processor time; more than a time slice
BUSY = 0.2  # of a processor, from which on some thread of the process is at work
LONGEST_REST = 0.5
WARM = 0.1  # seconds at the start of a turn that do not count
TURN = 0.2  # seconds after which a turn ends, once all batches have run
AHEAD = 8  # batches that are built at a time
AGAIN = 4  # times the budget at most go to turns that are had again because the machine was slow
WAIT = 0.5  # seconds before that


@dataclass(frozen=True)
class Timing:
    """Latency of one batch in microseconds: median over batches of each batch's median and of its minimum."""

    us: float
    us_min: float
    repetitions: int
    batches: int


@contextmanager
def set_aside() -> Iterator[None]:
    """Keep the collector from looking at what exists already: it takes longer to look than a turn takes to run."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def paused_gc() -> Iterator[None]:
    """Collect garbage now and keep the collector from running inside."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def seconds(run: Run, batch: list[Any]) -> float:
    """How long `run(batch)` takes."""
    start = time.perf_counter()
    run(batch)
    return time.perf_counter() - start


def come_to_rest() -> None:
    """Wait until no thread of this process is using a processor, or for half a second."""
    until = time.perf_counter() + LONGEST_REST
    while time.perf_counter() < until:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(REST)
        if time.process_time() - used < BUSY * (time.perf_counter() - start):
            return


def how_many(systems: Mapping[str, Run], batches: Sequence[Callable[[], list[Any]]], budget: float) -> int:
    """Of how many batches every system can run three turns in `budget` seconds, at least three (all, if fewer)."""
    # The first call pays for lazy set-up; the second tells how long a turn will take.
    once = [min(seconds(run, batches[0]()), seconds(run, batches[0]())) for run in systems.values()]
    return min(len(batches), max(int(budget / ((MIN_TURNS + 1) * sum(once) + 1e-9)), 3))


def interleave(
    systems: Mapping[str, Run],
    batches: Sequence[Callable[[], list[Any]]],
    budget: float,
    turns: int = MIN_TURNS,
    is_slow: IsSlow = lambda: False,
) -> dict[str, Timing]:
    """Time every system on every batch for about `budget` seconds in all, at least so many turns each.

    `batches[i]()` builds batch i from new objects. Before the first turn every system runs each of them once, untimed.
    Turns at whose end the machine `is_slow` are not counted, nor is their time.
    """
    for run in systems.values():
        for fresh in batches:
            run(fresh())

    with set_aside():
        return {name: _summary(times) for name, times in _turns(systems, batches, budget, turns, is_slow).items()}


def _turns(
    systems: Mapping[str, Run], used: Sequence[Callable[[], list[Any]]], budget: float, least: int, is_slow: IsSlow
) -> dict[str, list[list[float]]]:
    """For every system, the seconds that each batch took in each turn."""
    samples: dict[str, list[list[float]]] = {name: [[] for _ in used] for name in systems}
    spent = dict.fromkeys(systems, 0.0)
    deadline = time.perf_counter() + budget
    turns, again = 0, AGAIN * budget
    while turns < least or time.perf_counter() < deadline:
        fair = sum(spent.values()) / len(systems)
        for name, run in systems.items():
            if turns >= least and spent[name] > fair:
                continue
            begun = time.perf_counter()
            taken = _turn(run, used, deadline)
            while again > 0 and is_slow():
                time.sleep(WAIT)
                lost = time.perf_counter() - begun
                deadline, again, begun = deadline + lost, again - lost, begun + lost
                taken = _turn(run, used, deadline)
            for all_turns, this_one in zip(samples[name], taken, strict=True):
                all_turns += this_one
            spent[name] += sum(map(sum, taken))
        turns += 1
    return samples


def _turn(run: Run, used: Sequence[Callable[[], list[Any]]], deadline: float) -> list[list[float]]:
    """The seconds that each batch took, once or more often."""
    taken: list[list[float]] = [[] for _ in used]
    with paused_gc():
        come_to_rest()
        _warm_up(run, used)
        end = min(time.perf_counter() + TURN, deadline)
        while True:
            for i, batch in _built(used):
                taken[i].append(seconds(run, batch))
            if time.perf_counter() >= end:
                return taken


def _warm_up(run: Run, used: Sequence[Callable[[], list[Any]]]) -> None:
    """Run batches, at least one, until processors that rested are at work as usual."""
    until = time.perf_counter() + WARM
    while True:
        for _, batch in _built(used):
            run(batch)
            if time.perf_counter() > until:
                return


def _built(used: Sequence[Callable[[], list[Any]]]) -> Iterator[tuple[int, list[Any]]]:
    """Every batch and its number, built a few ahead."""
    for first in range(0, len(used), AHEAD):
        yield from enumerate([fresh() for fresh in used[first : first + AHEAD]], first)


def _summary(times: list[list[float]]) -> Timing:
    return Timing(
        us=1e6 * statistics.median(statistics.median(t) for t in times),
        us_min=1e6 * statistics.median(min(t) for t in times),
        repetitions=len(times[0]),
        batches=len(times),
    )


def median_of(timings: Sequence[Timing]) -> Timing:
    """Several timings of one system on the same batches as one: the median of each figure, all repetitions."""
    return Timing(
        us=statistics.median(t.us for t in timings),
        us_min=statistics.median(t.us_min for t in timings),
        repetitions=sum(t.repetitions for t in timings),
        batches=timings[0].batches,
    )
