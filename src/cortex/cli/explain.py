"""`cortex explain`: print a model at every stage on its way to machine code."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cortex.codegen.gpu.target import GpuTarget
    from cortex.codegen.target import Target
    from cortex.frontend.trace import Trace
    from cortex.ilir.ir import Func

EXAMPLES = 3
VOCABULARY = 1000
STAGES = ("traced", "simplified", "recursion", "lowered", "schedule", "scheduled", "passes")
ON_REQUEST = ("llvm", "assembly", "kernels")


def _stage(_: click.Context, option: click.Parameter, wanted: tuple[str, ...]) -> tuple[str, ...]:
    for name in wanted:
        if name not in STAGES + ON_REQUEST:
            known = ", ".join(STAGES + ON_REQUEST)
            raise click.BadParameter(f"there is no stage {name!r}; there are {known}", param=option)
    return wanted or STAGES


@click.command()
@click.argument("model")
@click.option("--weights", type=click.Path(path_type=Path), help="Weights of FILE.py:FUNCTION (.npz, .safetensors).")
@click.option("--examples", metavar="NAME", help="List of structures in FILE.py, to find the kinds of nodes from.")
@click.option("--hidden", type=click.IntRange(min=1), default=32, show_default=True, help="Hidden size, zoo models.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads a call runs on.")
@click.option("--schedule", "schedule_file", type=click.Path(path_type=Path), help="Compile with the schedule in FILE.")
@click.option("--target", metavar="NAME", help="As `cortex targets` lists them; opencl and cuda have kernels.")
@click.option("--cpu", metavar="NAME", help="Processor or device of the target: neoverse-n1, sm_80.")
@click.option("--stage", "wanted", multiple=True, metavar="NAME", callback=_stage, help="This stage only; repeatable.")
def command(
    model: str,
    weights: Path | None,
    examples: str | None,
    hidden: int,
    threads: int,
    schedule_file: Path | None,
    target: str | None,
    cpu: str | None,
    wanted: tuple[str, ...],
) -> None:
    """Print MODEL at every stage on its way to machine code, as `cortex.compile` with these examples compiles it.

    MODEL is the name of a model of the zoo (tree_lstm, gru, ...) or FILE.py:FUNCTION. The stages are traced,
    simplified, recursion (RA), lowered, schedule, scheduled, passes (ILIR) and, only if asked for, llvm and assembly;
    or, for opencl and cuda, kernels.
    """
    from cortex.compiler import target_of

    subject, its_weights, structures = subject_of(model, weights, examples, hidden)
    for name, text in _texts(subject, its_weights, structures, threads, schedule_file, target_of(target, cpu), wanted):
        click.secho(f"== {name} ==", bold=True)
        click.echo(text.rstrip("\n") + "\n")


def _texts(
    model: Any,
    weights: Any,
    examples: list[Any],
    threads: int,
    schedule_file: Path | None,
    target: Target | GpuTarget,
    wanted: tuple[str, ...],
) -> Iterator[tuple[str, str]]:
    """The wanted stages of a model as text."""
    from cortex.codegen.target import Target
    from cortex.compiler import stages
    from cortex.cost.choose import considered_text
    from cortex.device_compiler import DevicePlan
    from cortex.plan import Plan, Wishes
    from cortex.schedule.schedule import Schedule

    trace = traced(model, weights, examples)
    schedule = None if schedule_file is None else Schedule.load(schedule_file)
    plan: Plan
    if isinstance(target, Target):
        plan = Plan(target, None, None, schedule, Wishes(trace, examples), threads)
    else:
        plan = DevicePlan.of(target, schedule=schedule, threads=threads).settled(trace.model())
        target = plan.device
    *earlier, last = stages(trace.model(), plan)
    texts = {stage.name: stage.text() for stage in (*earlier, last)}
    texts["schedule"] = "\n".join([repr(last.schedule), *considered_text(last.considered)])
    texts["traced"] += "".join(f"\n{line}" for line in trace.per_arity())
    if set(ON_REQUEST) & set(wanted):
        texts |= _code(last.func, target)
    for name in wanted:
        if name not in texts:
            raise click.BadParameter(f"there are no {name} for {target}", param_hint="--stage")
    return ((name, texts[name]) for name in wanted)


def traced(model: Any, weights: Any, examples: list[Any]) -> Trace:
    """The trace of a model, as `cortex.compile` makes it."""
    from cortex.frontend.trace import Trace
    from cortex.frontend.weights import Weights

    trace = Trace(model, Weights(weights))
    trace.explore()
    trace.see(examples)
    return trace


def _code(f: Func, target: Target | GpuTarget) -> dict[str, str]:
    from cortex.codegen.gpu.target import GpuTarget

    if isinstance(target, GpuTarget):
        from cortex.device_compiler import kernels_of

        return {"kernels": kernels_of(f, target).text}
    from cortex.codegen.llvm.build import build

    code = build(f, target)
    return {"llvm": code.text, "assembly": code.assembly()}


def subject_of(model: str, weights: Path | None, examples: str | None, hidden: int) -> tuple[Any, Any, list[Any]]:
    """The model, its weights and structures to find its kinds from."""
    if ":" in model:
        return _from_file(model, weights, examples)
    from cortex import zoo

    if model not in zoo.ENTRIES:
        raise click.BadParameter(
            f"the zoo has no {model!r}; it has {', '.join(zoo.ENTRIES)}. For a model of your own give FILE.py:FUNCTION",
            param_hint="MODEL",
        )
    entry = zoo.ENTRIES[model]
    return entry.model, entry.weights(hidden, VOCABULARY), entry.structures(Random(0), EXAMPLES, VOCABULARY)


def _from_file(model: str, weights: Path | None, examples: str | None) -> tuple[Any, Any, list[Any]]:
    file, _, name = model.rpartition(":")
    if not Path(file).is_file():
        raise click.BadParameter(f"{file!r} is not a file; give FILE.py:FUNCTION", param_hint="MODEL")
    names = runpy.run_path(file)
    for wanted, hint in ((name, "MODEL"), (examples, "--examples")):
        if wanted is not None and wanted not in names:
            raise click.BadParameter(f"{Path(file).name} defines no {wanted!r}", param_hint=hint)
    return names[name], {} if weights is None else weights, names[examples] if examples else []
