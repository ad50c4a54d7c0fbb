"""compile(): the whole pipeline on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cortex.codegen.target import Target
from cortex.cost.choose import candidates
from cortex.cost.tuned import remembered
from cortex.cost.typical import typical
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
from cortex.recursion.hoist import Hoist
from cortex.recursion.specialize_leaves import SpecializeLeaves
from cortex.runtime.executable import Compiled, Executable
from cortex.schedule.default import DEFAULT, Choices, Registers, default_schedule

RECURSION_STEPS: tuple[Step[ra.Model], ...] = (SpecializeLeaves(), Hoist())


def compile(
    model: RecursiveModel,
    weights: Any = None,
    *,
    children: str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None = None,
    fields: Mapping[str, Any] | None = None,
    examples: Iterable[Any] | None = None,
    target: Target | None = None,
    choices: Choices | Literal["auto"] | None = None,
) -> Executable:
    """Compile a recursive model to native code.

    `weights` are the model's parameters: a mapping of arrays, or the path of an .npz or .safetensors file.
    `children` and `fields` say what `node.children` and other attributes mean on your objects, where they are not
    simply attributes of that name. `examples` are structures whose kinds of nodes are compiled now; kinds met later
    are compiled when they are first seen. `choices` are those of the schedule: given ones; those that are predicted
    fastest on typical structures ("auto", which takes some seconds); or, without any, what `cortex tune` found best for
    this model on this machine, and else what suits the machine's registers.
    """
    trace = Trace(model, Weights(weights), fields=fields, children=children)
    trace.explore()
    if examples is not None:
        trace.see(list(examples))
    machine = target or Target.host()
    return Executable(trace, lambda m: build(m, machine, choices))


def build(m: ra.Model, target: Target, choices: Choices | Literal["auto"] | None = None) -> Compiled:
    """The pipeline from a traced model to object code."""
    from cortex.codegen.llvm.build import build as generate

    if choices == "auto":
        choices = automatic(m, target)
    if choices is None:
        choices = remembered(Options.from_environment().cache, m, target.cpu) or DEFAULT
    *_, last = stages(m, target, choices)
    return Compiled(last.model, last.schedule, last.func, generate(last.func, target))


def automatic(m: ra.Model, target: Target) -> Choices:
    """The choices that are predicted fastest on this machine for typical structures. Nothing is run."""
    from cortex.runtime.measure_machine import here

    def program(choices: Choices) -> tuple[Func, tuple[Step[Func], ...]]:
        *_, last = stages(m, target, choices)
        return last.func, last.schedule

    *_, final = stages(m, target)
    return candidates(program, typical(final.model), here())[0].choices


@dataclass(frozen=True)
class Stage:
    """The program at one point of the pipeline."""

    name: str
    model: ra.Model
    schedule: tuple[Step[Func], ...]
    func: Func

    def text(self) -> str:
        """The program as text."""
        return show_ra(self.model) if self.name in ("traced", "simplified", "recursion") else show_ilir(self.func)


def stages(m: ra.Model, target: Target, choices: Choices = DEFAULT) -> Iterator[Stage]:
    """The program after each stage, in order."""
    check = Options.from_environment().verify
    empty = Func(m.name, (), (), (), ())
    yield Stage("traced", m, (), empty)
    m = simplify(m)
    yield Stage("simplified", m, (), empty)
    m = apply(m, RECURSION_STEPS)
    if check:
        ra_verify.verify(m)
    yield Stage("recursion", m, (), empty)
    f = lower(m, target.lanes, choices.inputs_first)
    yield Stage("lowered", m, (), f)
    schedule = default_schedule(f, Registers(target.registers, target.lanes), choices)
    for each in schedule:
        f = each.apply(f)
        if check:
            ilir_verify.verify(f)
    yield Stage("scheduled", m, schedule, f)
    f = run(PASSES, f)
    if check:
        ilir_verify.verify(f)
    yield Stage("passes", m, schedule, f)
