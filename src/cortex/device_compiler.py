"""Compiling for devices: the pipeline of compiler.py, with steps for a GPU and kernels at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from cortex.codegen.gpu.device_code import DeviceCode
from cortex.codegen.gpu.generate import Form, generate
from cortex.codegen.gpu.target import GpuTarget
from cortex.codegen.target import Target
from cortex.compiler import build, final
from cortex.cost.choose import ALWAYS, Considered
from cortex.cost.gpu_grid import choose_grid
from cortex.cost.gpu_machine import GpuMachine
from cortex.cost.typical import typical
from cortex.errors import ModelError
from cortex.ilir.ir import Func
from cortex.ir.step import Step, apply
from cortex.lower.lower import lower
from cortex.plan import Plan, for_table
from cortex.ra import ir as ra
from cortex.ra.simplify import simplify
from cortex.ra.table_model import table_model
from cortex.runtime.executable import Compiled
from cortex.runtime.signature import Signature
from cortex.schedule.default import Choices
from cortex.schedule.gpu_default import gpu_schedule
from cortex.schedule.narrow import Narrow
from cortex.schedule.parallel_default import Sharing
from cortex.schedule.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class DevicePlan(Plan):
    """How to compile for `device`. Tables are filled by the processor, which is the target of the plan."""

    device: GpuTarget

    @staticmethod
    def of(
        device: GpuTarget,
        recursion: tuple[Step[ra.Model], ...] | None = None,
        choices: Choices | None = None,
        schedule: Schedule | None = None,
        threads: int = 1,
        narrow: Narrow | None = None,
    ) -> DevicePlan:
        """The plan that was asked for; what devices have not is a ModelError."""
        refused = {"choices": choices is not None, "threads": threads != 1, "weights_dtype": narrow is not None}
        for name, is_given in refused.items():
            if is_given:
                raise ModelError(
                    f"target={device.dialect!r}: {name} is for processors. Leave it out, or leave out `target`."
                )
        return DevicePlan(Target.host(), recursion, None, schedule, device=device)

    @property
    def lanes(self) -> int:
        """Rows are not padded: items read neighbouring elements, wherever a row begins."""
        return 1

    def fixed(self, m: ra.Model) -> Schedule | None:
        """The schedule that was given; what tuning finds is for processors."""
        return self.schedule

    def on_recursion(self, m: ra.Model) -> tuple[tuple[Step[ra.Model], ...], tuple[Considered, ...]]:
        """The steps that were given, or those that are always taken."""
        return ALWAYS if self.recursion is None else self.recursion, ()

    def settled(self, m: ra.Model) -> DevicePlan:
        """This plan with a number and shape of work-groups: what is predicted to be fastest for typical requests."""
        if self.device.work_items is not None:
            return self
        steps, _ = self.on_recursion(m)
        m = apply(simplify(m), self.schedule.on_recursion if self.schedule is not None else steps)
        d, machine = self.device, GpuMachine.v100_like()
        grid = choose_grid(lower(m, self.lanes), typical(m), machine, d.groups, d.resident_bytes, d.persistent)
        return replace(self, device=replace(d, groups=grid.groups, work_items=grid.items))

    def on_loops(self, m: ra.Model, f: Func, mapping: Sharing | None) -> tuple[Step[Func], ...]:
        """The default schedule for a GPU, whose threads are work-groups."""
        return gpu_schedule(f, self.device.grid)


def build_kernels(m: ra.Model, plan: DevicePlan) -> Compiled:
    """The kernels of a traced model, as text: the device's own compiler translates them, and keeps what it has made."""
    plan = plan.settled(m)
    last = final(m, plan)
    tables = tuple(build(table_model(last.model, t), for_table(plan.target)) for t in last.model.tables)
    made = cache(lambda: last.func)
    return Compiled(
        last.model, last.schedule, (), Signature.of(last.func), kernels_of(last.func, plan.device), tables, made
    )


def kernels_of(f: Func, device: GpuTarget) -> DeviceCode:
    """The kernels of a function that is scheduled for a device."""
    form: Form = "persistent" if device.persistent else "per level"
    return DeviceCode(generate(f, device.dialect, device.groups, device.grid.items, form), device)
