"""From a lowered primitive to a kernel: choose a variant, apply its steps, run the passes, generate code."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from cortex.codegen.target import Target
from cortex.cost.machine import Machine
from cortex.cost.reuse import streaming_pays
from cortex.ilir.ir import Func, Scope
from cortex.ilir.streaming import stores_whole_vectors
from cortex.ilir.verify import verify
from cortex.ir.scalar import Int
from cortex.ir.step import Step, apply
from cortex.options import Options
from cortex.passes.pipeline import PASSES, run
from cortex.primitives.choose import Cost, Ranking
from cortex.primitives.share_out import share_out
from cortex.primitives.tuned import Tuned, file_of, remember, remembered
from cortex.primitives.variants import Shape, Variant, name_in_program, program_of, steps
from cortex.runtime.kernel import Kernel
from cortex.runtime.storage import Array
from cortex.schedule.registers import Registers
from cortex.schedule.stream import Stream

TURNS = 5
SHARING_NS = 4000.0
"""Giving work to threads that are awake, and waiting for the last of them."""


@dataclass(frozen=True)
class Compiled:
    """A kernel, the variant it runs, the schedule that made it, and the threads to run it on."""

    variant: Variant
    schedule: tuple[Step[Func], ...]
    kernel: Kernel
    threads: int = 1


def machine_of(target: Target) -> Machine:
    """This machine, with the registers of a target."""
    from cortex.runtime.measure_machine import here

    return replace(here(), lanes=target.lanes, registers=target.registers, broadcasts=target.broadcasts)


def compile_primitive(
    f: Func,
    params: Mapping[str, Array],
    *,
    target: Target,
    threads: int = 1,
    long_epilogue: bool = False,
    cost: Cost = "movement",
    tune: int = 0,
) -> Compiled:
    """The kernel of a lowered primitive for so many threads; for one, where that is predicted to be faster.

    It is the one that `cost` prefers; with `tune`, the fastest of so many that it prefers, which are run, once on a
    machine: the fastest is kept in the folder of measurements.
    """
    machine = machine_of(target)
    streams = streaming_pays(_bytes_of_result(f), machine)

    def build(v: Variant) -> Compiled:
        schedule = schedule_of(f, v, target, threads, long_epilogue, streams)
        return Compiled(v, schedule, Kernel(finished(f, schedule), target, params), threads)

    ranking = Ranking(f, machine, cost, threads)
    if threads > 1 and not _worth_sharing(ranking):
        threads, ranking = 1, Ranking(f, machine, cost)
    if tune < 2:
        return build(ranking.choices[0].variant)
    file = file_of(Options.from_environment().cache, f, target, threads)
    kept = remembered(file, tune)
    if kept is not None and kept.variant in ranking.variants:
        return build(kept.variant)
    built = [build(choice.variant) for choice in ranking.choices[:tune]]
    times = _times(f, built, threads)
    best = min(range(len(built)), key=times.__getitem__)
    about = f"{f.name} on {target}, {threads} thread{'s' * (threads != 1)}"
    remember(file, Tuned(built[best].variant, tune, round(1e6 * times[best], 2)), about)
    return built[best]


def _worth_sharing(shared: Ranking) -> bool:
    """Are several threads predicted to be faster than one, with what it takes to begin and to end together?"""
    best = shared.ns(shared.choices[0].variant)
    if best > 4 * SHARING_NS:  # not to be asked of what is long
        return True
    alone = Ranking(shared.f, shared.machine, shared.kind)
    return best + SHARING_NS < alone.ns(alone.choices[0].variant)


def _bytes_of_result(f: Func) -> int:
    return sum(4 * prod(e.value for e in b.shape if isinstance(e, Int)) for b in f.buffers if b.scope is Scope.STATE)


def _times(f: Func, built: list[Compiled], threads: int) -> list[float]:
    """Seconds of the fastest call of each, in turns."""
    sizes = {b.name: prod(e.value for e in b.shape if isinstance(e, Int)) for b in f.buffers}
    inputs = tuple(np.zeros(sizes[name], np.float32) for name in built[0].kernel.inputs)
    out = np.zeros(sum(sizes[b.name] for b in f.buffers if b.scope is Scope.STATE), np.float32)
    fastest = [float("inf")] * len(built)
    for _ in range(TURNS):
        for i, each in enumerate(built):
            each.kernel.run(inputs, out, (out.size,), threads)
            start = time.perf_counter()
            each.kernel.run(inputs, out, (out.size,), threads)
            fastest[i] = min(fastest[i], time.perf_counter() - start)
    return fastest


def schedule_of(
    f: Func, v: Variant, target: Target, threads: int, long_epilogue: bool, streams: bool = False
) -> tuple[Step[Func], ...]:
    """All steps of a variant; with `streams`, the result is written past the caches if it is in whole vectors."""
    found = steps(f, v, Registers(target.registers, target.lanes, target.broadcasts), long_epilogue)
    program = apply(f, found)
    if streams and stores_whole_vectors(program, "y"):
        found, program = (*found, Stream("y")), Stream("y").apply(program)
    if threads == 1:
        return found
    return (*found, *share_out(program, threads, name_in_program(Shape.of(program_of(f, v)), v)))


def finished(f: Func, schedule: tuple[Step[Func], ...]) -> Func:
    """The program that code is generated from."""
    f = run(PASSES, apply(f, schedule))
    if Options.from_environment().verify:
        verify(f)
    return f
