"""What a request is made of and where its time goes: groups, phases, bytes and operations, predicted and measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cortex.cost.machine import Machine
from cortex.cost.predict import Prediction, Predictor
from cortex.ilir.ir import Func
from cortex.lower.linear_form import LinearForm
from cortex.runtime.deviation import deviation_text
from cortex.schedule.schedule import Schedule

if TYPE_CHECKING:
    from cortex.runtime.timeline import Timeline

REPEATS, SECONDS = 5, 0.15

Span: TypeAlias = tuple[int, int | None, int, float, float]  # thread, group, phase, begin, end


@dataclass(frozen=True)
class PhaseReport:
    """One loop nest: work, bytes by the level of cache they come from, times in microseconds, and what bounds it."""

    label: str
    in_groups: bool
    operations: int
    loaded: int
    stored: int
    bytes_by_level: dict[str, float]
    predicted_us: float
    measured_us: float
    bound: str


@dataclass(frozen=True)
class GroupReport:
    """Nodes that ran together, and the microseconds of their phases, with their share of those ahead of the groups."""

    kind: str
    start: int
    nodes: int
    predicted_us: float
    measured_us: float


@dataclass(frozen=True)
class Report:
    """A request. `measured_us` is the compiled function with the clock on; `call_us` a whole call from Python.

    `spans` are (thread, group or None, phase, begin, end) in microseconds, as they ran in the fastest of many runs;
    phases and groups have the least time they took in any run, on the thread that took longest, so they may add up to
    less.
    """

    model: str
    machine: str
    structures: int
    nodes: int
    kinds: dict[str, int]
    groups: tuple[GroupReport, ...]
    phases: tuple[PhaseReport, ...]
    barriers: int
    predicted_us: float
    measured_us: float
    call_us: float
    linearize_us: float
    spans: tuple[Span, ...]
    schedule: Schedule
    deviation: Mapping[str, float] = field(default_factory=dict)  # of each state, where weights are narrow

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def make_report(
    name: str,
    kinds: Sequence[str],
    schedule: Schedule,
    form: LinearForm,
    prediction: Prediction,
    ran: Timeline,
    machine: Machine,
    call_us: float,
    linearize_us: float,
    deviation: Mapping[str, float],
) -> Report:
    """Put what is known of a request together."""
    threads = len(ran.spent)
    spent, of_phases = ran.spent.max(axis=0), ran.spent.sum(axis=1).max(axis=0)
    lengths = form.arrays["group_len"].tolist()
    group_kinds = form.arrays["group_kind"].tolist()
    predicted = _by_group(form, [(p.phase.kind, p.us_by_group) for p in prediction.phases])
    measured = _by_group(form, [(p.phase.kind, spent[:, p.phase.number]) for p in prediction.phases])
    groups = tuple(
        GroupReport(kinds[k], int(start), n, float(predicted[g]), float(measured[g]))
        for g, (start, n, k) in enumerate(zip(form.arrays["group_start"].tolist(), lengths, group_kinds, strict=True))
    )
    phases = tuple(
        PhaseReport(
            p.phase.label(tuple(kinds)),
            p.phase.in_groups,
            p.work.operations,
            p.work.loaded,
            p.work.stored,
            p.bytes,
            p.us,
            float(of_phases[p.phase.number]),
            p.bound,
        )
        for p in prediction.phases
        if p.phase.number
    )
    spans = tuple(
        (int(t), None if g == len(lengths) else int(g), int(p) - 1, float(begin), float(end))
        for t, g, p in np.argwhere(~np.isnan(ran.times[..., 0]))
        for begin, end in [ran.times[t, g, p]]
    )
    counted = {
        kind: sum(n for n, k in zip(lengths, group_kinds, strict=True) if k == i) for i, kind in enumerate(kinds)
    }
    return Report(
        name,
        f"{machine.cpu}, {_cores(threads)}, {machine.peak:.0f} GFLOP/s{' each' * (threads > 1)}",
        form.sizes["num_roots"],
        form.sizes["num_nodes"],
        counted,
        groups,
        phases,
        prediction.barriers,
        prediction.us,
        ran.us,
        call_us,
        linearize_us,
        tuple(sorted(spans, key=lambda s: (s[0], s[3]))),
        schedule,
        deviation,
    )


def _by_group(form: LinearForm, phases: Sequence[tuple[int | None, Any]]) -> Any:
    """The times of phases by group. Those of a kind ahead of the groups are shared out among its nodes."""
    total = np.sum([times[:-1] for _, times in phases], axis=0)
    for kind, times in phases:
        nodes = np.where(form.arrays["group_kind"] == kind, form.arrays["group_len"], 0)
        if nodes.any():
            total = total + times[-1] * nodes / nodes.sum()
    return total


def explanation(
    name: str, kinds: Sequence[str], f: Func, forms: Sequence[LinearForm], machine: Machine, threads: int = 1
) -> str:
    """The predicted time of each phase for some requests on so many threads, and why it takes that long."""
    predict = Predictor(f, machine)
    lines = [f"{name}, predicted for {machine.cpu} ({machine.peak:.0f} GFLOP/s, {_cores(threads)}); nothing was run"]
    for form in forms:
        p = predict(form, threads)
        sizes = form.sizes
        request = f"{_count(sizes['num_roots'], 'structure')}, {sizes['num_nodes']} nodes"
        lines += ["", f"{request} in {_count(sizes['num_groups'], 'group')}: {p.us:.1f} us"]
        for t in p.phases:
            if t.phase.number and t.us > 0:
                place = "in each group" if t.phase.in_groups else "before the groups"
                label = f"{t.phase.label(tuple(kinds)):<32.32} {place:<17}"
                lines.append(f"  {t.us:9.1f} us  {label}  {_why(t.bound, t.us, t.parts)}")
    return "\n".join(lines)


_REASONS = {
    "arithmetic": "bound by arithmetic",
    "loads": "bound by loads from the nearest cache",
    "stores": "bound by stores",
    "latency": "bound by sums waiting for themselves, too few at a time",
    "L1": "bound by reading L1",
    "L2": "bound by reading L2",
    "beyond L2": "bound by reading beyond L2",
    "overhead": "bound by loop overhead",
}


def _why(bound: str, us: float, parts: dict[str, float]) -> str:
    return f"{_REASONS.get(bound, bound)} ({100 * parts.get(bound, 0.0) / us:.0f}%)"


def best_us(run: Any) -> float:
    """The fewest microseconds `run` takes in some tries."""
    best, calls, end = float("inf"), 0, time.perf_counter() + SECONDS
    while calls < REPEATS or time.perf_counter() < end:
        start = time.perf_counter_ns()
        run()
        best = min(best, (time.perf_counter_ns() - start) / 1e3)
        calls += 1
    return best


def _cores(threads: int) -> str:
    return "one core" if threads == 1 else f"{threads} threads"


def size_text(size: float) -> str:
    """1.2 MB."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _lines(r: Report) -> Iterator[str]:
    kinds = ", ".join(f"{n} {kind}" for kind, n in r.kinds.items() if n)
    groups, barriers = _count(len(r.groups), "group"), _count(r.barriers, "barrier")
    yield f"{r.model}: {_count(r.structures, 'structure')}, {r.nodes} nodes ({kinds}) in {groups}, {barriers}"
    yield f"on {r.machine}"
    yield (
        f"whole call {r.call_us:.1f} us, of it linearizing {r.linearize_us:.1f} us; "
        f"compiled function {r.measured_us:.1f} us, predicted {r.predicted_us:.1f} us"
    )
    if r.deviation:
        yield deviation_text(r.deviation)
    yield ""
    yield f"{'phase':<32} {'operations':>12} {'loaded':>9} {'stored':>9} {'measured':>10} {'predicted':>10}  bound by"
    for p in r.phases:
        yield (
            f"{p.label:<32.32} {p.operations:>12,} {size_text(p.loaded):>9} {size_text(p.stored):>9} "
            f"{p.measured_us:>7.1f} us {p.predicted_us:>7.1f} us  {p.bound}"
        )
    yield ""
    yield f"{'group':>5}  {'kind':<20} {'nodes':>6} {'measured':>10} {'predicted':>10}"
    for number, g in enumerate(r.groups):
        yield f"{number:>5}  {g.kind:<20.20} {g.nodes:>6} {g.measured_us:>7.1f} us {g.predicted_us:>7.1f} us"
