"""From a traced model to kernels of a device: the same recursion steps, lowering and passes, and a schedule for GPUs."""

from __future__ import annotations

from collections.abc import Callable

from cortex.codegen.gpu.device_code import DeviceCode
from cortex.codegen.gpu.generate import generate
from cortex.codegen.gpu.target import GpuTarget
from cortex.cost.choose import ALWAYS
from cortex.ilir import verify as ilir_verify
from cortex.ilir.ir import Func
from cortex.ir.step import Step, apply
from cortex.lower.lower import lower
from cortex.options import Options
from cortex.passes.pipeline import PASSES, run
from cortex.ra import ir as ra
from cortex.ra import verify as ra_verify
from cortex.ra.simplify import simplify
from cortex.ra.table_model import table_model
from cortex.runtime.executable import Compiled
from cortex.runtime.signature import Signature
from cortex.schedule.gpu_default import Grid, gpu_schedule
from cortex.schedule.schedule import Schedule

ROW = 1
"""Elements that rows are padded to: items read one element each, wherever it lies."""


def build_for_device(
    m: ra.Model,
    target: GpuTarget,
    recursion: tuple[Step[ra.Model], ...] | None,
    schedule: Schedule | None,
    build_table: Callable[[ra.Model], Compiled],
) -> Compiled:
    """The kernels of a traced model; `build_table` compiles the programs that fill its tables, which the host runs.

    Without a `schedule`, the steps of `recursion` (by default those that always pay) and the GPU's default schedule.
    """
    m = simplify(m)
    on_recursion = schedule.on_recursion if schedule is not None else ALWAYS if recursion is None else recursion
    m = apply(m, on_recursion)
    f = lower(m, ROW)
    grid = Grid(target.groups, target.work_items, target.local_bytes if target.persistent else 0)
    on_loops = schedule.on_loops if schedule is not None else gpu_schedule(f, grid)
    f = scheduled(m, f, on_loops)
    form = "persistent" if target.persistent else "per level"
    program = generate(f, target.dialect, target.groups, target.work_items, form)
    tables = tuple(build_table(table_model(m, t)) for t in m.tables)
    steps = Schedule((*on_recursion, *on_loops))
    return Compiled(m, steps, (), Signature.of(f), DeviceCode(program, target), tables, lambda: f)


def scheduled(m: ra.Model, f: Func, loops: tuple[Step[Func], ...]) -> Func:
    """`f` after the steps and all passes, checked where options say so."""
    check = Options.from_environment().verify
    f = apply(f, loops)
    if check:
        ra_verify.verify(m)
        ilir_verify.verify(f)
    f = run(PASSES, f)
    if check:
        ilir_verify.verify(f)
    return f
