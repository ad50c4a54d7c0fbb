"""Predicted time of a request, phase by phase and group by group.

Each statement list takes the longest of what its pipelines need and what its data needs to arrive:

    max(arithmetic * fma, loads * load + broadcasts * broadcast, 2 * stores * load, links * chain, bytes / rate)

with the rate of each byte that of the distance it comes from. A core overlaps these inside a list, and hardly across
lists. To it comes entering and leaving loops, choosing arms, and barriers. The constants are those of the machine
and the weights of operations in `issue`; none belongs to a single model. On several threads, a phase takes what the
thread with most of it takes (`shares`); what threads do to each other's caches is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.cost.count import Counter, Runs, Work
from cortex.cost.issue import Issue, issues
from cortex.cost.machine import Machine
from cortex.cost.movement import Movement
from cortex.cost.shares import Shares
from cortex.cost.sites import Phase
from cortex.ilir.ir import Func, If, LoopKind, Switch
from cortex.lower.linear_form import LinearForm

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PhaseTime:
    """One phase: predicted microseconds by group (the last is outside the groups), work, bytes by level, and why.

    `us` are microseconds in all: of the groups of the thread that is done last, where threads run different groups.
    `bound` names what most of the time goes to: "arithmetic", "loads", "latency", "L2", "beyond L2", "overhead".
    `parts` are the microseconds by that reason.
    """

    phase: Phase
    us_by_group: Array
    us: float
    work: Work
    bytes: dict[str, float]
    parts: dict[str, float]

    @property
    def bound(self) -> str:
        """What most of the time goes to."""
        return max(self.parts, key=lambda reason: self.parts[reason]) if self.parts else "nothing"


@dataclass(frozen=True)
class Prediction:
    """The whole request."""

    runs: Runs
    phases: tuple[PhaseTime, ...]
    barriers: int
    call_us: float

    @property
    def us(self) -> float:
        """Microseconds of the compiled function, without linearizing."""
        return sum(p.us for p in self.phases)


class Predictor:
    """Predicts requests for one program on one machine; reading the program is done once."""

    def __init__(self, f: Func, machine: Machine) -> None:
        self.machine = machine
        self.counter = Counter(f)
        self.movement = Movement(self.counter.sites)
        self.shares = Shares(self.counter.sites)
        self.issues = issues(self.counter.sites, self.movement.accesses, machine.registers, machine.broadcasts)
        touched = self.movement.touched_by
        self.site = np.array([a.site.number for a in touched], int)
        self.phase = np.array([a.site.phase for a in touched], int)
        self.overheads = [
            (site, sum(isinstance(s, If | Switch) for s in site.body)) for site in self.counter.sites.sites
        ]

    def __call__(self, form: LinearForm, threads: int = 1) -> Prediction:
        """What the request will take on so many threads."""
        m, sites = self.machine, self.counter.sites
        runs = self.counter(form)
        columns = runs.runs.shape[1]
        arrive, levels = self._arrivals(runs)
        share = self.shares.busiest(runs, threads)
        barrier = m.barrier if threads > 1 else 0.0
        spent: list[dict[str, Array]] = [{} for _ in sites.phases]

        def spend(phase: int, reason: str, ns: Array) -> None:
            spent[phase][reason] = spent[phase].get(reason, np.zeros(columns)) + ns

        for each in self.issues:
            n = runs.runs[each.site.number]
            if n.any():
                reason, ns = self._list_time(each, n, {level: ns[each.site.number] for level, ns in arrive.items()})
                spend(each.site.phase, reason, ns * share[each.site.number])
        for site, branches in self.overheads:
            cost = m.branch * branches + barrier * site.counts.barriers
            if cost:
                spend(site.phase, "overhead", cost * runs.runs[site.number] * share[site.number])
            if site.loop is not None and site.loop.kind is LoopKind.SERIAL:
                spend(site.phase, "overhead", m.loop * runs.runs[site.parent] * share[site.parent])
        work = runs.work()
        times = [sum(reasons.values(), np.zeros(columns)) for reasons in spent]
        last = self.shares.last(form, sum(times, np.zeros(columns)), threads) / 1e3
        parts = [{reason: float(ns @ last) for reason, ns in reasons.items()} for reasons in spent]
        phases = tuple(
            PhaseTime(phase, t / 1e3, float(t @ last), w, b, p)
            for phase, t, w, b, p in zip(sites.phases, times, work, levels, parts, strict=True)
        )
        return Prediction(runs, phases, sum(w.barriers for w in work), m.call / 1e3)

    def _list_time(self, each: Issue, n: Array, arriving: dict[str, Array]) -> tuple[str, Array]:
        m = self.machine
        candidates: dict[str, Array] = {
            "arithmetic": n * each.arithmetic * m.fma,
            "loads": n * ((each.loads + 2 * each.spilled) * m.load + each.broadcasts * m.broadcast),
            "stores": n * (each.stores + each.spilled) * 2 * m.load,
            "latency": n * each.links * m.chain,
        }
        moved = sum(arriving.values(), np.zeros(len(n)))
        total = np.maximum.reduce([*candidates.values(), moved])
        totals = {reason: float(ns.sum()) for reason, ns in candidates.items()}
        totals |= {level: float(moved.sum()) for level in arriving if arriving[level].sum() * 2 >= moved.sum()}
        return max(totals, key=lambda reason: totals[reason]), total

    def _arrivals(self, runs: Runs) -> tuple[dict[str, Array], list[dict[str, float]]]:
        """Nanoseconds to bring the data of each list, by level: (lists, groups); and the bytes of phases by level."""
        m, sites = self.machine, runs.sites
        traffic = self.movement(runs)
        columns = runs.runs.shape[1]
        sizes, rates = zip(*m.reads, strict=True)
        ns = traffic.bytes / np.interp(np.log(np.maximum(traffic.distance, 1.0)), np.log(sizes), rates)
        near, inside = traffic.distance <= m.l1, traffic.distance <= m.l2
        arrive: dict[str, Array] = {}
        levels: list[dict[str, float]] = [{} for _ in sites.phases]
        for name, mask in (("L1", near), ("L2", inside & ~near), ("beyond L2", ~inside)):
            arrive[name] = np.zeros((len(sites.sites), columns))
            np.add.at(arrive[name], self.site, ns * mask)
            moved = np.bincount(self.phase, (traffic.bytes * mask).sum(axis=1), len(sites.phases))
            for number in np.flatnonzero(moved).tolist():
                levels[number][name] = float(moved[number])
        return arrive, levels
