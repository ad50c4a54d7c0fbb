"""The automatic scheduler: which steps on the recursion pay on this machine, for given or typical requests.

One change at a time is tried, by an estimate of the lowered program (`estimate`), and kept where it brings the times
of the requests below `GAIN`. Nothing is run. What was considered, and why it was taken or left, is kept for `explain`.
The tiles of the loops are chosen later, one nest at a time (`tiles`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import get_args

from cortex.cost.estimate import Estimate, Estimator
from cortex.cost.machine import Machine
from cortex.cost.typical import recurses
from cortex.errors import ScheduleError
from cortex.ilir.ir import Func
from cortex.ir.step import Step, apply
from cortex.lower.linear_form import LinearForm
from cortex.lower.lower import lower
from cortex.ra import ir as ra
from cortex.ra.guards import cover_all_nodes
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.hoist import Hoist
from cortex.recursion.inputs_inside import InputsInside
from cortex.recursion.refactor import Refactor
from cortex.recursion.specialize_leaves import SpecializeLeaves
from cortex.recursion.tabulate import Candidate, Tabulate, candidate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts, leaf_products
from cortex.recursion.unroll import UnrollRecursion
from cortex.schedule.parallel_default import Sharing

Recursion = tuple[Step[ra.Model], ...]
Requests = Callable[[ra.Model], Sequence[LinearForm]]
"""The requests to be fast for, in the linear form of a model."""

ALWAYS: Recursion = (SpecializeLeaves(), Hoist())
"""Steps that never cost anything."""

GAIN = 0.98
"""A change must bring the time below this share: estimates are not better than that."""

TABLE_BYTES = 64 << 20
FILLING_US = 1e6
"""Tables take at most so much memory together, and so long to be filled."""

WALK_US, HASH_US, AGENDA_US = 0.08, 0.03, 0.015
"""Linearizing, per node: walking the objects; looking for an equal subtree; keeping an agenda."""


@dataclass(frozen=True)
class Considered:
    """A change that was considered: predicted time over that without it (None: not tried), and the outcome.

    `step` is the change where it was possible.
    """

    what: str
    ratio: float | None
    taken: bool
    why: str
    step: Step[ra.Model] | None = None

    def text(self) -> str:
        """One line."""
        outcome = "taken" if self.taken else "left"
        times = "" if self.ratio is None else f" ({self.ratio:.2f}x the time)"
        return f"{self.what}: {outcome}{times}, {self.why}"


def considered_text(considered: Sequence[Considered]) -> list[str]:
    """Lines for people, below others; none where there was nothing to choose."""
    return ["", "steps considered:", *(f"  {c.text()}" for c in considered)] if considered else []


def recursion_steps(
    m: ra.Model,
    machine: Machine,
    requests: Requests,
    *,
    threads: int = 1,
    has_examples: bool = False,
    table_bytes: int = TABLE_BYTES,
    leaf_products: bool | None = None,
) -> tuple[Recursion, tuple[Considered, ...]]:
    """The best steps for a simplified model. Without examples, what depends on their shapes is left as it is, or, where
    several kinds have inner nodes, taken for what it brings on random trees.

    `leaf_products` settles whether `TabulateLeafProducts` is taken, where it can be: of the steps here, it alone
    changes bits of the results.
    """
    search = _Search(m, machine, requests, threads)
    search.tabulate(table_bytes)
    if leaf_products or (leaf_products is None and has_examples and table_bytes):
        search.tabulate_leaf_products(table_bytes, settled=bool(leaf_products))
    if search.has_inputs():
        loss = "one product over all nodes reads their weights once"
        search.consider(InputsInside(), "their weights are read with the others anyway", loss)
    if has_examples:
        search.consider(Batch("depth"), "its groups fill tiles better", "its groups fill tiles no better")
    if has_examples or search.alternates():
        search.consider(Batch("agenda"), "its groups fill tiles better", "its groups fill tiles no better")
    if threads > 1:
        search.consider(Refactor(), "fewer barriers", "it saves no barrier that is worth the operators it repeats")
        if has_examples:
            search.consider(UnrollRecursion(), "fewer barriers", "larger kinds do not pay for the barriers they save")
    else:
        why = "they save barriers, and one thread meets none"
        search.considered.append(Considered("Refactor, UnrollRecursion", None, False, why))
    if has_examples:
        search.consider(Dedup(), "the examples repeat themselves", "the examples hardly repeat themselves")
    return search.recursion, tuple(search.considered)


def sharing(
    f: Func, machine: Machine, requests: Sequence[LinearForm], threads: int
) -> tuple[Sharing, tuple[Considered, ...]]:
    """What threads should share out in a lowered program: columns, unless something else is clearly better."""
    estimate = Estimator(f, machine)
    times: dict[Sharing, list[float]] = {
        mapping: [estimate(form, threads, mapping).us for form in requests] for mapping in get_args(Sharing)
    }
    ratios = {mapping: _ratio(us, times["columns"]) for mapping, us in times.items()}
    best = min(ratios, key=lambda mapping: ratios[mapping])
    best = best if ratios[best] < GAIN else "columns"
    return best, tuple(
        Considered(f"{threads} threads share {mapping}", ratio, mapping == best, f"{sum(times[mapping]):.1f} us in all")
        for mapping, ratio in ratios.items()
    )


class _Search:
    """The best that was found so far, and how."""

    def __init__(self, m: ra.Model, machine: Machine, requests: Requests, threads: int) -> None:
        self.m, self.machine, self.requests, self.threads = m, machine, requests, threads
        self.recursion = ALWAYS
        self.considered: list[Considered] = []
        self._last: Estimator | None = None
        self.best = self.plain = self.estimate(ALWAYS)

    def estimate(self, recursion: Recursion, threads: int | None = None) -> _Times:
        m = apply(self.m, recursion)
        estimator = self._estimator(lower(m, self.machine.lanes))
        forms = self.requests(m)
        estimates = tuple(estimator(form, threads or self.threads) for form in forms)
        walking = WALK_US + HASH_US * m.dedup + AGENDA_US * (m.batching == "agenda")
        nodes = [len(form.arrays.get("order", ())) or form.sizes["num_nodes"] for form in forms]
        outside = [self.machine.call / 1e3 + walking * n for n in nodes]
        return _Times(estimator, m, estimates, tuple(e.us + o for e, o in zip(estimates, outside, strict=True)))

    def _estimator(self, f: Func) -> Estimator:
        """Of a program; steps that change only how requests are linearized leave it as it was."""
        if self._last is None or self._last.func != f:
            self._last = Estimator(f, self.machine)
        return self._last

    def consider(self, step: Step[ra.Model], gain: str, loss: str, below: float = GAIN) -> None:
        """Take `step` if it pays: if it brings the time below that share."""
        try:
            times = self.estimate((*self.recursion, step))
        except ScheduleError as refused:
            why = str(refused).partition("\n")[0].removeprefix(f"{step!r}: ")
            self.considered.append(Considered(repr(step), None, False, f"not possible: {why}"))
            return
        ratio = times.over(self.best)
        taken = ratio < below
        self.considered.append(Considered(repr(step), ratio, taken, gain if taken else loss, step))
        if taken:
            self.best, self.recursion = times, (*self.recursion, step)

    def has_inputs(self) -> bool:
        """Are there products to be left in the recursion: of a kind that has a part in it?"""
        inside = {p.phase.kind for p in self.best.estimator.parts if p.phase.in_groups}
        return any(p.phase.kind in inside for p in self.best.estimator.parts if not p.phase.in_groups)

    def alternates(self) -> bool:
        """Are there several kinds of inner nodes, each with groups of its own?"""
        return sum(recurses(kind) and kind.own_group for kind in self.best.model.kinds) > 1

    def tabulate(self, most_bytes: int) -> None:
        """Take tables for the kinds that gain most per byte, as far as memory goes."""
        chosen: list[Candidate] = []
        for c in sorted(self._tables(), key=lambda c: -self._spent(c.kind) / c.bytes):
            size, filling = sum(x.bytes for x in chosen) + c.bytes, self._filling(c)
            name = repr(Tabulate(c.kind.name))
            if size > most_bytes:
                why = f"its table would take {_size(size)} and {_size(most_bytes)} are allowed"
                self.considered.append(Considered(name, None, False, why))
            elif filling > FILLING_US:
                why = f"its table would take {filling / 1e6:.1f} s to fill"
                self.considered.append(Considered(name, None, False, why))
            else:
                chosen.append(c)
        for c in chosen:
            gain = f"a look-up in {_size(c.bytes)}"
            below = 1.0 if c.bytes <= self.machine.l1 else GAIN  # less work, and its reading can hardly cost more
            self.consider(_table_of(c), gain, f"{gain} is not faster than computing it", below)

    def tabulate_leaf_products(self, most_bytes: int, settled: bool) -> None:
        """Let nodes above leaves look up products if that pays, or is settled.

        It changes the last bits of results, which must not depend on the number of threads: one is asked, whatever
        tables pay on several.
        """
        step, plain = TabulateLeafProducts(most_bytes), self.plain.model
        found = leaf_products(plain)
        if isinstance(found, str):
            return
        tables = {k.name: c for k in plain.kinds if isinstance(c := candidate(plain, k), Candidate)}
        size = sum(c.bytes for c in tables.values()) + found.bytes
        filling = found.rows.limit * found.multiply_adds / self.machine.lanes * self.machine.fma / 1e3
        why = ""
        if not settled and any(isinstance(fact.test, ra.Length) for kind in plain.kinds for fact in kind.guard):
            why = "a request waits for every number of children that turns up, for two kinds with it"
        elif not settled and not cover_all_nodes([kind.guard for kind in plain.kinds]):
            why = "a kind of leaves that turns up later would undo it, and results would change in their last bits"
        elif size > most_bytes:
            why = f"with it, tables would take {_size(size)} and {_size(most_bytes)} are allowed"
        elif filling > FILLING_US:
            why = f"its table would take {filling / 1e6:.1f} s to fill"
        if why:
            self.considered.append(Considered(repr(step), None, False, why))
            return
        leaf = found.rows.kind.name
        before = (*ALWAYS, _table_of(tables[leaf])) if leaf in tables else ALWAYS
        best_is_before = self.threads == 1 and self.recursion == before
        times = self.estimate((*before, step), 1)
        ratio = times.over(self.best if best_is_before else self.estimate(before, 1))
        taken = settled or ratio < GAIN
        what = f"products of leaves in {_size(found.bytes)}"
        why = what if taken else f"{what} are not faster than computing them"
        self.considered.append(Considered(repr(step), ratio, taken, why, step))
        if taken:
            self.recursion = (*self.recursion, step)
            self.best = times if best_is_before else self.estimate(self.recursion)

    def _tables(self) -> Iterator[Candidate]:
        for kind in self.best.model.kinds:
            found = candidate(self.best.model, kind)
            if isinstance(found, Candidate) and self._spent(kind):
                yield found

    def _spent(self, kind: ra.Kind, ahead: bool = False) -> float:
        """Microseconds spent on a kind, or on what of it is computed ahead of the recursion."""
        number = self.best.model.kinds.index(kind)
        parts = [p.phase.kind == number and not (ahead and p.phase.in_groups) for p in self.best.estimator.parts]
        return sum(us for e in self.best.estimates for us, mine in zip(e.nests, parts, strict=True) if mine)

    def _filling(self, c: Candidate) -> float:
        """Microseconds to compute the whole table, if a row takes what a node of the requests does."""
        number = self.best.model.kinds.index(c.kind)
        nodes = sum(
            int(f.arrays["group_len"][f.arrays["group_kind"] == number].sum()) for f in self.requests(self.best.model)
        )
        return self._spent(c.kind, ahead=True) / max(1, nodes) * c.limit


def _ratio(us: Sequence[float], others: Sequence[float]) -> float:
    """The geometric mean of the ratios, so that small requests count as much as large ones."""
    ratios = [log(max(a, 1e-9) / max(b, 1e-9)) for a, b in zip(us, others, strict=True)]
    return exp(sum(ratios) / len(ratios)) if ratios else 1.0


def _table_of(c: Candidate) -> Tabulate:
    """The step that makes a table, whose limit is the usual one unless the table takes more."""
    return Tabulate(c.kind.name) if c.bytes <= TABLE_BYTES else Tabulate(c.kind.name, c.bytes)


def _size(n: int) -> str:
    return f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{n / 1e3:.0f} kB"


@dataclass(frozen=True)
class _Times:
    """The estimated times of the requests for one way of writing the model."""

    estimator: Estimator
    model: ra.Model
    estimates: tuple[Estimate, ...]
    us: tuple[float, ...]

    def over(self, other: _Times) -> float:
        """How much longer the requests take than for another way."""
        return _ratio(self.us, other.us)
