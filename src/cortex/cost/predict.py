"""Predicted time of a request, phase by phase and group by group.

Each statement list takes the longest of what its pipelines need and what its data needs to arrive:

    max(arithmetic * fma, loads * load, stores * load, links * chain, bytes / rate(distance)) + spills

because a core overlaps these inside a list, and hardly across lists. To it comes entering and leaving loops,
choosing arms, and barriers. The constants are those of the machine; none belongs to a model.
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
from cortex.cost.sites import Phase
from cortex.ilir.ir import Func, If, LoopKind, Switch
from cortex.lower.linear_form import LinearForm

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PhaseTime:
    """One phase: predicted microseconds by group (the last is outside the groups), work, bytes by level, and why.

    `bound` names what most of the time goes to: "arithmetic", "loads", "latency", "L2", "beyond L2", "overhead".
    `parts` are the microseconds by that reason.
    """

    phase: Phase
    us_by_group: Array
    work: Work
    bytes: dict[str, float]
    parts: dict[str, float]

    @property
    def us(self) -> float:
        """Microseconds in all."""
        return float(self.us_by_group.sum())

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
        self.issues = issues(self.counter.sites, self.movement.accesses, machine.registers)
        self._rate = np.vectorize(machine.rate, otypes=[float])

    def __call__(self, form: LinearForm) -> Prediction:
        """What the request will take."""
        m, sites = self.machine, self.counter.sites
        runs = self.counter(form)
        columns = runs.runs.shape[1]
        arrive, levels = self._arrivals(runs, form)
        times = [np.zeros(columns) for _ in sites.phases]
        parts: list[dict[str, float]] = [{} for _ in sites.phases]

        def spend(phase: int, reason: str, ns: Array) -> None:
            times[phase] += ns
            parts[phase][reason] = parts[phase].get(reason, 0.0) + float(ns.sum()) / 1e3

        for each in self.issues:
            n = runs.runs[each.site.number]
            if n.any():
                reason, ns = self._list_time(each, n, arrive.get(each.site.number, {}))
                spend(each.site.phase, reason, ns)
        for site in sites.sites:
            if site.loop is not None and site.loop.kind is LoopKind.SERIAL and site.parent >= 0:
                spend(site.phase, "overhead", m.loop * runs.runs[site.parent])
            branches = sum(isinstance(s, If | Switch) for s in site.body)
            if branches or site.counts.barriers:
                cost = m.branch * branches + m.barrier * site.counts.barriers
                spend(site.phase, "overhead", cost * runs.runs[site.number])
        work = runs.work()
        phases = tuple(
            PhaseTime(phase, t / 1e3, w, b, p)
            for phase, t, w, b, p in zip(sites.phases, times, work, levels, parts, strict=True)
        )
        return Prediction(runs, phases, sum(w.counts.barriers for w in work), m.call / 1e3)

    def _list_time(self, each: Issue, n: Array, arriving: dict[str, Array]) -> tuple[str, Array]:
        m = self.machine
        candidates: dict[str, Array] = {
            "arithmetic": n * each.arithmetic * m.fma,
            "loads": n * (each.loads + 2 * each.spilled) * m.load,
            "stores": n * (each.stores + each.spilled) * 2 * m.load,
            "latency": n * each.links * m.chain,
        }
        moved = sum(arriving.values(), np.zeros(len(n)))
        total = np.maximum.reduce([*candidates.values(), moved])
        totals = {reason: float(ns.sum()) for reason, ns in candidates.items()}
        totals |= {level: float(moved.sum()) for level in arriving if arriving[level].sum() * 2 >= moved.sum()}
        return max(totals, key=lambda reason: totals[reason]), total

    def _arrivals(self, runs: Runs, form: LinearForm) -> tuple[dict[int, dict[str, Array]], list[dict[str, float]]]:
        """Nanoseconds to bring the data of each list, by level, and the bytes of each phase by level."""
        m = self.machine
        arrive: dict[int, dict[str, Array]] = {}
        levels: list[dict[str, float]] = [{} for _ in runs.sites.phases]
        traffic = self.movement(runs, form.sizes)
        if not traffic:
            return arrive, levels
        distances = np.stack([t.distance for t in traffic])
        sizes = [size for size, _ in m.reads]
        rates = np.interp(np.log(np.maximum(distances, 1.0)), np.log(sizes), [rate for _, rate in m.reads])
        moved = np.stack([t.bytes for t in traffic])
        ns = moved / rates
        near = distances <= m.l1
        inside = ~near & (distances <= m.l2)
        for i, t in enumerate(traffic):
            site, phase = t.access.site.number, t.access.site.phase
            for name, mask in (("L1", near[i]), ("L2", inside[i]), ("beyond L2", ~near[i] & ~inside[i])):
                if not mask.any() or not moved[i].any():
                    continue
                amount = float(moved[i] @ mask)
                if amount:
                    levels[phase][name] = levels[phase].get(name, 0.0) + amount
                    mine = arrive.setdefault(site, {})
                    mine[name] = mine.get(name, 0.0) + ns[i] * mask
        return arrive, levels
