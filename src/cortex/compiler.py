"""compile(): the whole pipeline on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cortex.codegen.target import Target
from cortex.cost.choose import candidates
from cortex.cost.tuned import remembered
from cortex.cost.typical import typical
from cortex.errors import ScheduleError
from cortex.frontend.model import RecursiveModel
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.ilir import verify as ilir_verify
from cortex.ilir.ir import Func
from cortex.ilir.show import show as show_ilir
from cortex.ir.step import Step, apply
from cortex.lower.lower import lower
from cortex.options import Options
from cortex.passes.pipeline import PASSES, run
from cortex.ra import ir as ra
from cortex.ra import verify as ra_verify
from cortex.ra.show import show as show_ra
from cortex.ra.simplify import simplify
from cortex.ra.table_model import table_model
from cortex.recursion.hoist import Hoist
from cortex.recursion.specialize_leaves import SpecializeLeaves
from cortex.runtime.executable import Compiled, Executable
from cortex.schedule.default import DEFAULT, Choices, Registers, default_schedule
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.schedule import Schedule

RECURSION_STEPS: tuple[Step[ra.Model], ...] = (SpecializeLeaves(), Hoist())


def compile(
    model: RecursiveModel,
    weights: Any = None,
    *,
    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    fields: Mapping[str, Any] | None = None,
    examples: Any = None,
    target: Target | None = None,
    recursion: tuple[Step[ra.Model], ...] = RECURSION_STEPS,
    schedule: Schedule | None = None,
    choices: Choices | Literal["auto"] | None = None,
    threads: int = 1,
) -> Executable:
    """Compile a recursive model to native code.

    `weights` are the model's parameters: a mapping of arrays, or the path of an .npz or .safetensors file.
    `children` and `fields` say what `node.children` and other attributes mean on your objects, where they are not
    simply attributes of that name. `examples` are structures (a list, or one) whose kinds of nodes are compiled now;
    kinds met later are compiled when they are first seen.

    `recursion` are the steps to apply to the recursive model. `choices` are those of the default schedule of its loops:
    given ones; those that are predicted fastest on typical structures ("auto", which takes some seconds); or, without
    any, what `cortex tune` found best for this model on this machine, and else what suits the machine's registers.
    `schedule` replaces all of that: exactly its steps are applied. Calls run on `threads` threads unless they say
    otherwise; results do not depend on it.
    """
    if not (choices is None or choices == "auto" or isinstance(choices, Choices)):
        raise ScheduleError(f'choices={choices!r}: give Choices, "auto", or None for what suits the machine.')
    if not (schedule is None or isinstance(schedule, Schedule)):
        raise ScheduleError(
            f"schedule={schedule!r}: give a Schedule, as Schedule((Fuse(...), ...)) or Schedule.load(file)."
        )
    trace = Trace(model, Weights(weights), fields=fields, children=children)
    trace.explore()
    if examples is not None:
        trace.see(list(examples) if type(examples) in (list, tuple) else [examples])
    plan = Plan(target or Target.host(), recursion, schedule, choices=choices)
    return Executable(trace, lambda m, threads: build(m, replace(plan, threads=threads)), threads)


@dataclass(frozen=True)
class Plan:
    """How to compile: for which machine, with which steps, for how many threads.

    Without a `schedule`, the steps of `recursion` are followed by the default schedule of the loops with `choices`.
    """

    target: Target
    recursion: tuple[Step[ra.Model], ...] = RECURSION_STEPS
    schedule: Schedule | None = None
    threads: int = 1
    choices: Choices | Literal["auto"] | None = DEFAULT

    def on_recursion(self) -> tuple[Step[ra.Model], ...]:
        """The steps to apply to the model."""
        return self.recursion if self.schedule is None else self.schedule.on_recursion

    def chosen(self, m: ra.Model) -> Choices:
        """The choices of the default schedule for the traced model `m`."""
        match self.choices:
            case Choices() as given:
                return given
            case _ if self.schedule is not None:
                return DEFAULT
            case "auto":
                return automatic(m, self)
            case _:
                return remembered(Options.from_environment().cache, m, self.target.cpu) or DEFAULT

    def on_loops(self, f: Func, choices: Choices) -> tuple[Step[Func], ...]:
        """The steps to apply to the lowered function `f`."""
        if self.schedule is not None:
            return self.schedule.on_loops
        steps = default_schedule(f, Registers(self.target.registers, self.target.lanes), choices)
        return steps if self.threads == 1 else (*steps, *parallel_schedule(apply(f, steps), self.threads))


def build(m: ra.Model, plan: Plan) -> Compiled:
    """The pipeline from a traced model to object code, and that of the programs that fill its tables."""
    from cortex.codegen.llvm.build import build as generate

    *_, last = stages(m, plan)
    tables = tuple(build(table_model(last.model, t), Plan(plan.target, ())) for t in last.model.tables)
    return Compiled(last.model, last.schedule, last.func, generate(last.func, plan.target), tables)


def automatic(m: ra.Model, plan: Plan) -> Choices:
    """The choices that are predicted fastest on this machine for typical structures. Nothing is run."""
    from cortex.runtime.measure_machine import here

    def program(choices: Choices) -> tuple[Func, Schedule]:
        *_, last = stages(m, replace(plan, choices=choices))
        return last.func, last.schedule

    *_, final = stages(m, replace(plan, choices=DEFAULT))
    return candidates(program, typical(final.model), here())[0].choices


@dataclass(frozen=True)
class Stage:
    """The program at one point of the pipeline, and the steps applied so far."""

    name: str
    model: ra.Model
    schedule: Schedule
    func: Func

    def text(self) -> str:
        """The program as text."""
        return show_ra(self.model) if self.name in ("traced", "simplified", "recursion") else show_ilir(self.func)


def stages(m: ra.Model, plan: Plan) -> Iterator[Stage]:
    """The program after each stage, in order."""
    check = Options.from_environment().verify
    empty = Func(m.name, (), (), (), ())
    yield Stage("traced", m, Schedule(), empty)
    recursion, choices = plan.on_recursion(), plan.chosen(m)
    m = simplify(m)
    yield Stage("simplified", m, Schedule(), empty)
    m = apply(m, recursion)
    if check:
        ra_verify.verify(m)
    yield Stage("recursion", m, Schedule(recursion), empty)
    f = lower(m, plan.target.lanes, choices.inputs_first)
    yield Stage("lowered", m, Schedule(recursion), f)
    loops = plan.on_loops(f, choices)
    shared = False
    for each in loops:
        f = each.apply(f)
        shared = shared or isinstance(each, Parallel)
        if check:  # until Alone(), what is in no parallel loop is still every thread's
            ilir_verify.verify(Alone().apply(f) if shared else f)
    schedule = Schedule((*recursion, *loops))
    yield Stage("scheduled", m, schedule, f)
    f = run(PASSES, f)
    if check:
        ilir_verify.verify(f)
    yield Stage("passes", m, schedule, f)
