"""Random schedules: legal steps one after the other, and whether what they make of a model means the same."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from random_requests import Case, lowered
from random_steps import random_copies, random_loop_step, random_recursion_step, random_sharing_step

from cortex.cost.count import BYTES, INDEX_BYTES, Counter
from cortex.errors import ScheduleError
from cortex.ilir import interp
from cortex.ilir.count import Counts
from cortex.ilir.ir import For, Func, LoopKind, Scope, Stmt
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.ir.step import Step
from cortex.lower.linear_form import LinearForm
from cortex.ra import ir as ra
from cortex.ra.verify import verify as verify_ra
from cortex.schedule.around import bodies
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.schedule import Schedule, namespace

sys.path.insert(0, str(Path(__file__).parents[1] / "56_parallel"))
from races import races

T = TypeVar("T")
MAX_STATEMENTS = 800  # beyond it, a program is no longer small; steps that make it larger are not taken
MAX_LETS = 250


@dataclass(frozen=True)
class Outcome:
    """A random schedule, the model and the program it makes, and the steps that refused."""

    steps: tuple[Step[Any], ...]
    model: ra.Model
    f: Func
    refused: tuple[Step[Any], ...]


def random_schedule(m: ra.Model, rng: random.Random) -> Outcome:
    """`m` after the legal ones of some random steps on the recursion, then on loops, then of sharing among threads."""
    attempts = _Attempts()
    for _ in range(rng.choice((0, 1, 2, 3, 4, 6))):
        m = attempts.apply(m, random_recursion_step(m, rng), verify_ra, _few_lets)
    f = lowered(m)
    for draw, tries in ((random_loop_step, rng.randint(4, 24)), (random_sharing_step, rng.choice((0, 0, 5, 10)))):
        for _ in range(tries):
            if any(isinstance(s, For) for s in f.body):
                f = attempts.apply(f, draw(f, rng), _verify_once_shared, _few_statements)
    if any(isinstance(s, Parallel | ParallelTrees | Alone) for s in attempts.accepted):
        copies = tuple(random_copies(f, rng) for _ in range(rng.choice((0, 1, 3))))
        for last in (*copies, Alone(), PlaceBarriers()):
            f = attempts.apply(f, last, _verify_once_shared)
        verify(f)
    return Outcome(tuple(attempts.accepted), m, f, tuple(attempts.refused))


class _Attempts:
    """Steps that were tried: a step leaves the program it is given as it was, and refuses with ScheduleError only."""

    def __init__(self) -> None:
        self.accepted: list[Step[Any]] = []
        self.refused: list[Step[Any]] = []

    def apply(
        self, program: T, step: Step[T], check: Callable[[T], None], small: Callable[[T], bool] = lambda _: True
    ) -> T:
        """`program` after `step`, or itself if that refuses or makes more of it than tests have time for."""
        kept = hash(program)
        try:
            new = step.apply(program)
            check(new)
        except ScheduleError:
            assert hash(program) == kept
            self.refused.append(step)
            return program
        except Exception as error:
            error.add_note(f"at {step!r}, after {self.accepted}")
            raise
        assert hash(program) == kept
        if not small(new):
            return program
        self.accepted.append(step)
        return new


def _few_lets(m: ra.Model) -> bool:
    return sum(len(k.lets) for k in m.kinds) <= MAX_LETS


def _few_statements(f: Func) -> bool:
    return _statements(f.body) <= MAX_STATEMENTS


def _statements(body: tuple[Stmt, ...]) -> int:
    """How many statements code is made for; those of an unrolled loop once for each iteration."""
    total = 0
    for s in body:
        times = s.hi.value if isinstance(s, For) and s.kind is LoopKind.UNROLLED and isinstance(s.hi, Int) else 1
        total += 1 + times * sum(map(_statements, bodies(s)))
    return total


def _verify_once_shared(f: Func) -> None:
    """Is `f` well-formed? Until `Alone`, what is in no parallel loop is still every thread's."""
    verify(Alone().apply(f) if is_parallel(f) else f)


def is_parallel(f: Func) -> bool:
    """Has `f` loops that threads share?"""
    return any(isinstance(n, For) and n.kind is LoopKind.PARALLEL for n in walk(f))


def faults(case: Case, outcome: Outcome) -> Iterator[str]:
    """In what ways a scheduled program differs from its model, as the interpreters see it; nothing if it does not."""
    schedule = Schedule(outcome.steps)
    if not (eval(repr(schedule), namespace()) == Schedule.parse(repr(schedule)) == schedule):
        yield "the schedule does not print as what rebuilds it"
    original = case.model
    wanted = case.meaning(original, case.form(original))
    form = case.form(outcome.model, outcome.f)
    if not same(wanted, case.meaning(outcome.model, form)):
        yield "ra.interp after the recursion steps"
    result = interp.run(outcome.f, form.sizes, form.arrays, case.inputs(outcome.model, form))
    got = {s.name: result.buffers[f"state_{s.name}"][form.arrays["order"]] for s in outcome.model.outputs}
    if not same(wanted, got):
        yield "ilir.interp"
    if not _counted(outcome.f, form, result.counts):
        yield "the counts of the cost model"
    if is_parallel(outcome.f):
        yield from races(outcome.f, form.sizes, form.arrays, threads=3)


def faults_compiled(case: Case, outcome: Outcome) -> Iterator[str]:
    """In what ways the compiled program differs from its model, and on several threads from itself."""
    original = case.model
    form = case.form(original)
    wanted = case.meaning(original, form)
    single = case.meaning(original, form, np.float32)
    if not same(wanted, single, 2e-5, 2e-6):
        return  # ill-conditioned: what float32 makes of it says nothing
    fast = case.compiled(Schedule(outcome.steps))
    out = fast(case.structures, threads=1)
    got = {name: np.asarray(out.nodes[name]) for name in wanted}
    if not same(wanted, got, 1e-4, 1e-5):
        yield "compiled code"
    for threads in (2, 3) if is_parallel(outcome.f) else ():
        team = fast(case.structures, threads=threads)
        if any(np.asarray(team.nodes[name]).tobytes() != value.tobytes() for name, value in got.items()):
            yield f"compiled code on {threads} threads"


def same(wanted: dict[str, Any], got: dict[str, Any], relative: float = 1e-9, absolute: float = 1e-11) -> bool:
    """Are the states equal, up to the rounding of sums in another order?"""
    return list(wanted) == list(got) and all(
        np.allclose(got[name], value, rtol=relative, atol=absolute, equal_nan=True) for name, value in wanted.items()
    )


def _counted(f: Func, form: LinearForm, counts: Counts) -> bool:
    """Are the operations and bytes that the cost model predicts those that the interpreter counted?"""
    runs = Counter(f)(form)
    size = {b.name: BYTES[b.dtype] for b in f.buffers if b.scope is not Scope.REGISTER}
    loaded = sum(size.get(b, 0) * n for b, n in counts.loads.items()) + INDEX_BYTES * sum(counts.index_reads.values())
    stored = sum(size.get(b, 0) * n for b, n in counts.stores.items())
    work = runs.work()
    return (
        runs.counts() == counts
        and sum(w.operations for w in work) == sum(counts.flops.values())
        and (sum(w.loaded for w in work), sum(w.stored for w in work)) == (loaded, stored)
    )
