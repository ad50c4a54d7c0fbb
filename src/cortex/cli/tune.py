"""`cortex tune`: measure the schedules that are predicted best, and remember the fastest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from cortex.cli import output
from cortex.cli.explain import subject_of

MEASURED = 5  # schedules, the default one among them


@click.command()
@click.argument("model")
@click.option("--weights", type=click.Path(path_type=Path), help="Weights of FILE.py:FUNCTION (.npz, .safetensors).")
@click.option("--examples", metavar="NAME", help="List of structures in FILE.py to tune for.")
@click.option("--hidden", type=click.IntRange(min=1), default=256, show_default=True, help="Hidden size, zoo models.")
@click.option("--budget", type=click.FloatRange(min=0), default=10.0, show_default=True, help="Seconds of measuring.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found to FILE; - is standard output.")
def command(
    model: str, weights: Path | None, examples: str | None, hidden: int, budget: float, json_file: str | None
) -> None:
    """Find the fastest schedule for MODEL on this machine.

    MODEL is the name of a model of the zoo or FILE.py:FUNCTION. The schedules that the cost model predicts to be best
    are compiled and timed in turns on the example structures; the fastest is kept in the cache folder (CORTEX_CACHE),
    where `cortex.compile` finds it for this model, these sizes and this machine.
    """
    function, its_weights, structures = subject_of(model, weights, examples, hidden)
    if not structures:
        raise click.BadParameter("tuning needs structures; name a list of them with --examples", param_hint="MODEL")
    console = output.console(json_file)
    with output.progress(console) as bar:
        found = _tune(bar, function, its_weights, list(structures), budget)
    for r in found["measured"]:
        line = f"{r['us']:10.1f} us measured {r['predicted_us']:10.1f} us predicted   {r['choices']}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"kept in {found['file']}", highlight=False)
    output.write_json(json_file, found)


def _tune(bar: Any, function: Any, weights: Any, structures: list[Any], budget: float) -> dict[str, Any]:
    import cortex
    from cortex.codegen.target import Target
    from cortex.compiler import Plan, stages
    from cortex.cost.choose import TILES, candidates
    from cortex.cost.tuned import remember
    from cortex.options import Options
    from cortex.runtime.measure_machine import here
    from cortex.schedule.default import Choices

    target = Target.host()
    default = cortex.compile(function, weights, examples=structures, choices=Choices())
    request = default.linearize(structures)
    task = bar.add_task("predicting", total=len(TILES))

    def programs(choices: Choices) -> Any:
        *_, last = stages(default.traced, Plan(target, choices=choices))
        bar.advance(task)
        return last.func, last.schedule

    ranked = candidates(programs, [request], here())
    chosen = [c for c in ranked if c.schedule != default.schedule][: MEASURED - 1]
    chosen += [c for c in ranked if c.schedule == default.schedule]
    bar.update(task, description="compiling", total=len(chosen), completed=0)
    systems = []
    for candidate in chosen:
        systems.append(cortex.compile(function, weights, examples=structures, choices=candidate.choices))
        bar.advance(task)
    rounds, best, begin = 0, [float("inf")] * len(chosen), time.perf_counter()
    bar.update(task, description="measuring", total=max(budget, 1e-9), completed=0)
    while rounds < 3 or time.perf_counter() - begin < budget:
        for i, fast in enumerate(systems):
            fast(structures)  # its weights are in the caches when the clock starts
            start = time.perf_counter_ns()
            fast(structures)
            best[i] = min(best[i], (time.perf_counter_ns() - start) / 1e3)
        rounds += 1
        bar.update(task, completed=min(budget, time.perf_counter() - begin))
    order = sorted(range(len(chosen)), key=lambda i: best[i])
    measured = [
        {"choices": chosen[i].choices.describe(), "us": round(best[i], 2), "predicted_us": round(chosen[i].us, 2)}
        for i in order
    ]
    winner = chosen[order[0]]
    details = {"rounds": rounds, "measured": measured, "schedule": [repr(s) for s in winner.schedule]}
    file = remember(Options.from_environment().cache, default.traced, target.cpu, winner.choices, details)
    return {"file": str(file), **details}
