"""What a program is compiled for, and what follows from that for its schedule."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from cortex import __version__
from cortex.cache.key import key_of
from cortex.codegen.target import Target
from cortex.cost.alternating import alternating
from cortex.cost.choose import ALWAYS, TABLE_BYTES, Considered, recursion_steps, sharing
from cortex.cost.estimate import Estimator
from cortex.cost.machine import Machine
from cortex.cost.tiles import Tiles
from cortex.cost.tuned import remembered
from cortex.cost.typical import typical
from cortex.errors import StructureError
from cortex.frontend.trace import Trace
from cortex.ilir.ir import Func
from cortex.ir.step import Step
from cortex.lower.linear_form import LinearForm
from cortex.options import Options
from cortex.ra import ir as ra
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.runtime.compiled import Compiled
from cortex.runtime.linearize import UnknownKind, linearizer
from cortex.schedule.default import DEFAULT, Choices, NarrowWeights, default_schedule
from cortex.schedule.in_f32 import in_f32
from cortex.schedule.narrow import Narrow
from cortex.schedule.parallel_default import Sharing, is_worth_sharing
from cortex.schedule.registers import Registers
from cortex.schedule.schedule import Schedule

MOST_EXAMPLES, MOST_GROUPS = 32, 5000
"""Structures that predictions are made for, and groups of a request; more would take time and tell little."""


@dataclass(frozen=True)
class Wishes:
    """What the automatic scheduler is to be good for: examples, if there are any, and tables of at most some size.

    `leaf_products` says whether nodes above leaves look up products, where code that does or does not is in use.
    """

    trace: Trace | None = None
    examples: list[Any] | None = None
    table_bytes: int = TABLE_BYTES
    leaf_products: bool | None = None

    @cached_property
    def batches(self) -> list[list[Any]]:
        """The requests to predict: the examples at once, and the first by itself, if they have few enough groups."""
        if not self.examples or self.trace is None:
            return []
        some = self.examples[:MOST_EXAMPLES]
        forms = linearizer(self.trace.model(), self.trace.accessors)
        batches = [some[:1], some] if len(some) > 1 else [some]
        return [b for b in batches if forms.linearize(self.trace.roots(b))["sizes"]["num_groups"] <= MOST_GROUPS]

    def requests(self, m: ra.Model) -> list[LinearForm]:
        """The batches in the linear form of a model, windows of all kinds included; without any, typical requests.

        A batch is left out that has kinds which the model lost when it was traced anew for another request.
        """
        if not self.batches or self.trace is None:
            return typical(m)
        forms = linearizer(m, self.trace.accessors, windows=tuple(range(len(m.kinds))))
        found = []
        for batch in self.batches:
            with suppress(UnknownKind):
                found.append(LinearForm(**forms.linearize(self.trace.roots(batch))))
        return found or typical(m)

    @property
    def settled(self) -> bool | None:
        """`leaf_products`; not where nodes are calls, whose kinds are to tell which other calls to make."""
        return False if self.trace is not None and self.trace.accessors.of_calls else self.leaf_products

    def fingerprint(self, m: ra.Model) -> str:
        """Equal for equal wishes: of examples, all that linearizing them tells."""
        examples = [form.digest() for form in self.requests(m)] if self.batches else []
        return repr((self.table_bytes, self.settled, examples))


@dataclass(frozen=True)
class Plan:
    """How to compile: for which machine, with which steps, for how many threads.

    Without a `schedule`, the steps of `recursion` are followed by the default schedule of the loops with `choices`.
    What is None is chosen: as tuning found, or else as is predicted best for `wishes`.
    """

    target: Target
    recursion: tuple[Step[ra.Model], ...] | None = ALWAYS
    choices: Choices | None = DEFAULT
    schedule: Schedule | None = None
    wishes: Wishes = Wishes()
    threads: int = 1
    narrow: Narrow | None = None  # how weights are stored, where not as f32

    @property
    def lanes(self) -> int:
        """To a multiple of how many elements rows are padded."""
        return self.target.lanes

    def fixed(self, m: ra.Model) -> Schedule | None:
        """The whole schedule where it is given, or was found by tuning.

        Tuning measures f32 weights and tables of the usual size: its schedule is for plans that ask for nothing else.
        """
        asked = (self.schedule, self.recursion, self.choices, self.narrow)
        if any(each is not None for each in asked):
            return self.schedule
        found = remembered(Options.from_environment().cache, m, self.target.cpu)
        return found if found is not None and self.allows_tables(found) else None

    def allows_tables(self, schedule: Schedule) -> bool:
        """Do the tables of a schedule take no more than they may?"""
        steps = (s for s in schedule if isinstance(s, Tabulate | TabulateLeafProducts))
        return all(step.limit_bytes <= self.wishes.table_bytes for step in steps)

    def key(self, m: ra.Model) -> str | None:
        """The name by which the object code of `m` is kept; None where that is not possible."""
        try:
            return key_of(self.ingredients(m))
        except (ValueError, StructureError):  # a constant too large to print; examples that will be refused
            return None

    def ingredients(self, m: ra.Model) -> tuple[str, ...]:
        """All that decides the object code of `m`, but for the compiler itself; see cache/key.py."""
        fixed = self.fixed(m)
        given = (__version__, m, self.target, fixed, self.recursion, self.choices, self.threads, self.narrow)
        told = (*map(repr, given), f"verify {Options.from_environment().verify}")
        if fixed is not None or (self.recursion is not None and self.choices is not None):
            return told
        return (*told, repr(self.machine()), self.wishes.fingerprint(m))

    def in_f32(self, m: ra.Model) -> Plan:
        """The same without narrow weights, on one thread: what to measure deviations from."""
        fixed = self.fixed(m)
        if fixed is not None:
            fixed = in_f32(fixed)
        return replace(self, schedule=fixed, threads=1, narrow=None)

    def like(self, used: Compiled, target: Target | None, threads: int) -> Plan:
        """For another machine or number of threads, with the bits of the program in use where machines are alike."""
        taken = any(isinstance(step, TabulateLeafProducts) for step in used.schedule)
        wishes = replace(self.wishes, leaf_products=taken)
        return replace(self, target=target or self.target, threads=threads, wishes=wishes)

    def machine(self) -> Machine:
        """The machine to be fast on: this one, with the registers of the target."""
        from cortex.runtime.measure_machine import here

        t = self.target
        return replace(here(), lanes=t.lanes, registers=t.registers, broadcasts=t.broadcasts)

    def on_recursion(self, m: ra.Model) -> tuple[tuple[Step[ra.Model], ...], tuple[Considered, ...]]:
        """The steps to apply to the simplified model, and what else was considered."""
        if self.recursion is not None:
            return self.recursion, ()
        wishes = self.wishes
        return recursion_steps(
            m,
            self.machine(),
            wishes.requests,
            threads=self.threads,
            has_examples=bool(wishes.batches),
            table_bytes=wishes.table_bytes,
            leaf_products=wishes.settled,
        )

    def on_loops(self, m: ra.Model, f: Func, mapping: Sharing | None) -> tuple[Step[Func], ...]:
        """The steps to apply to the function `f` that `m` was lowered to, of which threads share `mapping`."""
        registers = Registers(self.target.registers, self.target.lanes, self.target.broadcasts)
        narrow = None if self.narrow is None else NarrowWeights(self.inputs())
        if self.choices is not None:
            for_team = self.threads > 1 and self.choices.parallel in (None, "columns")
            return default_schedule(f, registers, self.choices, narrow=narrow, for_team=for_team)
        threads = self.threads if mapping == "columns" and is_worth_sharing(f) else 1
        tiles = Tiles.of(Estimator(f, self.machine()), self.wishes.requests(m), threads)
        return default_schedule(f, registers, Choices(tile=None), tiles, narrow, for_team=threads > 1)

    def inputs(self) -> Literal["bf16", "i16"] | None:
        """The type that inputs are rounded to as well, where that makes products faster."""
        match self.narrow:
            case Narrow(dtype="bf16") if self.target.has("avx512bf16"):
                return "bf16"
            case Narrow(dtype="i8" | "i16"):
                return "i16"
            case _:
                return None

    def on_threads(self, m: ra.Model, f: Func) -> tuple[Sharing | None, tuple[Considered, ...]]:
        """What threads share out of `f`, and what else was considered."""
        if self.choices is not None:
            return self.choices.parallel, ()
        return sharing(f, self.machine(), self.wishes.requests(m), self.threads)

    def on_panels(self, f: Func) -> tuple[tuple[Step[Func], ...], tuple[Considered, ...]]:
        """The steps that turn the panels of the scheduled function `f`, and what was considered."""
        return ((), ()) if self.choices is not None else alternating(f, self.machine(), self.threads)


def for_table(target: Target) -> Plan:
    """How the program that fills a table is compiled: tables are filled here, by code that this machine can run."""
    return Plan(target if target.runs_here() else Target.host(), ())


def for_training(target: Target, threads: int) -> Plan:
    """How both passes of training are compiled: kinds stay as they are, and nothing is computed ahead of calls."""
    return Plan(target, (), Choices(parallel="columns"), threads=threads)
