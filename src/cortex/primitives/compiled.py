"""From a lowered primitive to a kernel: choose a variant, apply its steps, run the passes, generate code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cortex.codegen.target import Target
from cortex.cost.machine import Machine
from cortex.ilir.ir import Func
from cortex.ilir.verify import verify
from cortex.ir.step import Step, apply
from cortex.options import Options
from cortex.passes.pipeline import PASSES, run
from cortex.primitives.choose import Cost, Ranking
from cortex.primitives.share_out import share_out
from cortex.primitives.variants import Variant, steps
from cortex.runtime.kernel import Kernel
from cortex.runtime.storage import Array
from cortex.schedule.registers import Registers


@dataclass(frozen=True)
class Compiled:
    """A kernel, the variant it runs and the schedule that made it."""

    variant: Variant
    schedule: tuple[Step[Func], ...]
    kernel: Kernel


def machine_of(target: Target) -> Machine:
    """This machine, with the registers of a target."""
    from cortex.runtime.measure_machine import here

    return replace(here(), lanes=target.lanes, registers=target.registers)


def compile_primitive(
    f: Func,
    params: Mapping[str, Array],
    *,
    target: Target,
    threads: int = 1,
    long_epilogue: bool = False,
    cost: Cost = "movement",
) -> Compiled:
    """The kernel of a lowered primitive for so many threads."""
    variant = Ranking(f, machine_of(target), cost).choices[0].variant
    schedule = schedule_of(f, variant, target, threads, long_epilogue)
    return Compiled(variant, schedule, Kernel(finished(f, schedule), target, params))


def schedule_of(f: Func, v: Variant, target: Target, threads: int, long_epilogue: bool) -> tuple[Step[Func], ...]:
    """All steps of a variant."""
    found = steps(f, v, Registers(target.registers, target.lanes), long_epilogue)
    return (*found, *share_out(apply(f, found), threads)) if threads > 1 else found


def finished(f: Func, schedule: tuple[Step[Func], ...]) -> Func:
    """The program that code is generated from."""
    f = run(PASSES, apply(f, schedule))
    if Options.from_environment().verify:
        verify(f)
    return f
