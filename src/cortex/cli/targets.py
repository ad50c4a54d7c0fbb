"""`cortex targets`: the machines that models can be compiled for."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from cortex.cli.output import console, write_json

if TYPE_CHECKING:
    from cortex.codegen.target import Target

# To build and run a package of each target elsewhere than on such a machine.
TOOLS = {
    "x86-64-linux-gnu": ("x86_64-linux-gnu-gcc", "qemu-x86_64"),
    "aarch64-linux-gnu": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
}


@click.command()
@click.option("--json", "json_file", metavar="FILE", help="Write the list as JSON; - for standard output.")
def command(json_file: str | None) -> None:
    """List the targets: what is available here, and what each needs."""
    from cortex.codegen.target import CPUS, Target

    host = Target.host()
    to = console(json_file)
    to.print(f"this machine: {host}, {host.lanes} lanes, {host.registers} vector registers\n", highlight=False)
    found = []
    for name, cpus in CPUS.items():
        is_here = host.architecture == next(iter(cpus.values())).architecture
        to.print(f"{name}: {_calls(is_here)}", highlight=False)
        rows = [("native", host)] * is_here + list(cpus.items())
        for cpu, target in rows:
            to.print(f"  {cpu:<12} {_about(target)}", highlight=False)
        missing = [] if is_here else [tool for tool in TOOLS[name] if shutil.which(tool) is None]
        needs = (
            "a C compiler" if is_here else f"a C compiler for it ({TOOLS[name][0]}); {TOOLS[name][1]} to try it here"
        )
        to.print(
            f"  export needs nothing; a package needs {needs}{_missing(missing)}\n", highlight=False, soft_wrap=True
        )
        about = [
            {"cpu": cpu, "runs_here": t.runs_here(), "lanes": t.lanes, "registers": t.registers} for cpu, t in rows
        ]
        found.append({"target": name, "cpus": about, "missing": missing})
    for device in (_opencl(), _cuda()):
        to.print("\n".join(device.lines()) + "\n", highlight=False, markup=False, soft_wrap=True)
        found.append(asdict(device))
    write_json(json_file, found)


@dataclass(frozen=True)
class _Device:
    """A target that runs kernels: on what here, what compiles them here, and what is missing."""

    target: str
    devices: list[str]
    compiler: str | None
    missing: str | None

    def lines(self) -> list[str]:
        where = "called from Python here" if self.devices else "not called from Python here"
        compiler = [f"  compiled by {self.compiler}"] if self.compiler else []
        missing = [f"  {self.missing}"] if self.missing else []
        return [f"{self.target}: kernels; {where}", *(f"  {name}" for name in self.devices), *compiler, *missing]


def _opencl() -> _Device:
    from cortex.errors import ModelError
    from cortex.runtime.opencl import REMEDY, devices, full_name

    try:
        names = [f"{full_name(d)}, {d.max_compute_units} compute units" for d in devices()]
    except ModelError as error:
        return _Device("opencl", [], None, str(error))
    return _Device("opencl", names, None, None if names else f"needs an OpenCL device, or PoCL: {REMEDY}")


def _cuda() -> _Device:
    from cortex.codegen.gpu import nvrtc
    from cortex.errors import ModelError
    from cortex.runtime.cuda import find_device

    compiler = f"NVRTC {nvrtc.version()}, for {', '.join(nvrtc.ARCHITECTURES)} and others" * nvrtc.is_installed()
    try:
        device = find_device()
    except ModelError as error:
        return _Device("cuda", [], compiler or None, str(error))
    name = f"{device.name} ({device.architecture}), {device.multiprocessors} multiprocessors"
    return _Device("cuda", [name], compiler or None, None)


def _calls(is_here: bool) -> str:
    return "called from Python here, and exported to C" if is_here else "exported to C; not called from Python here"


def _about(target: Target) -> str:
    where = "runs here" if target.runs_here() else "does not run here"
    return f"{target.lanes:>2} lanes, {target.registers} vector registers; {where}"


def _missing(tools: list[str]) -> str:
    return f" (not installed: {', '.join(tools)})" if tools else ""
