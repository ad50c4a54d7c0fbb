"""What a request is made of on a device: launches, copies, and the time of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cortex.codegen.gpu.program import Launch
from cortex.codegen.gpu.target import GpuTarget
from cortex.cost.gpu import GpuPredictor
from cortex.cost.gpu_machine import GpuMachine
from cortex.ilir.ir import Func
from cortex.lower.linear_form import LinearForm
from cortex.runtime.device_program import DeviceProgram
from cortex.runtime.report import best_us


@dataclass(frozen=True)
class DeviceReport:
    """A request on a device. Times are of whole calls from Python, in microseconds, the least of many.

    `copied` are the bytes of the request, which go to the device at once; weights are there already. With `one_kernel`,
    all levels are one launch.
    """

    model: str
    device: str
    one_kernel: bool
    work_groups: int
    work_items: tuple[int, int]
    structures: int
    nodes: int
    groups: int
    launches: int
    copied: int
    call_us: float
    linearize_us: float

    def __str__(self) -> str:
        x, y = self.work_items
        form = "one kernel for all levels" if self.one_kernel else "one kernel per level"
        return "\n".join(
            [
                f"{self.model} on {self.device}: {form}, {self.work_groups} work-groups of {x} x {y} items",
                f"  {self.structures} structures, {self.nodes} nodes, {self.groups} groups of nodes",
                f"  {self.launches} launches, {self.copied:,} bytes copied to the device",
                f"  {self.call_us:.0f} us a call, of which {self.linearize_us:.0f} us to linearize",
            ]
        )


def device_explanation(name: str, f: Func, target: GpuTarget, forms: Sequence[LinearForm]) -> str:
    """What a program does on a device for some requests, counted: nothing is measured or predicted."""
    count = GpuPredictor(f, target.grid, GpuMachine.v100_like(), target.persistent)
    lines = [f"{name} for {target}: {target.groups} work-groups"]
    for form in forms:
        found = count(form)
        lines.append(
            f"  {form.sizes['num_roots']} structures, {form.sizes['num_nodes']} nodes: {found.launches} launches, "
            f"{found.barriers} barriers, {found.operations:,} operations; from and to global memory "
            f"{found.weight_bytes:,} bytes of weights and {found.other_bytes:,} of states and inputs"
        )
    return "\n".join(lines)


def device_report(program: DeviceProgram, nodes: Any, form: LinearForm) -> DeviceReport:
    """Run a request many times and say what it took."""
    kernels = program.program
    run = program.run(nodes, False)
    return DeviceReport(
        kernels.name,
        program.device.name,
        [type(s) for s in kernels.host] == [Launch],
        kernels.groups,
        kernels.kernels[0].work_items if kernels.kernels else (1, 1),
        form.sizes["num_roots"],
        form.sizes["num_nodes"],
        form.sizes["num_groups"],
        run.launches,
        run.copied,
        best_us(lambda: program.run(nodes, False)),
        best_us(lambda: program.prepare(nodes)),
    )
