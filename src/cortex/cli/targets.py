"""`cortex targets`: the machines that models can be compiled for."""

from __future__ import annotations

import shutil
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
    write_json(json_file, found)


def _calls(is_here: bool) -> str:
    return "called from Python here, and exported to C" if is_here else "exported to C; not called from Python here"


def _about(target: Target) -> str:
    where = "runs here" if target.runs_here() else "does not run here"
    return f"{target.lanes:>2} lanes, {target.registers} vector registers; {where}"


def _missing(tools: list[str]) -> str:
    return f" (not installed: {', '.join(tools)})" if tools else ""
