"""`cortex tune`: measure the schedules that are predicted best, and remember the fastest."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import click

from cortex.cli import output
from cortex.cli.explain import subject_of

if TYPE_CHECKING:
    from cortex.plan import Plan
    from cortex.ra.ir import Model
    from cortex.runtime.executable import Executable
    from cortex.schedule.schedule import Schedule

MEASURED = 5  # schedules, the automatic one among them
LEAST_ROUNDS = 3


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
    are compiled and timed in turns, on the first example alone and on the examples at once; the one whose geometric
    mean is least is kept in the cache folder (CORTEX_CACHE), where `cortex.compile` finds it for this model, these
    sizes and this machine.
    """
    function, its_weights, structures = subject_of(model, weights, examples, hidden)
    if not structures:
        raise click.BadParameter("tuning needs structures; name a list of them with --examples", param_hint="MODEL")
    console = output.console(json_file)
    with output.progress(console) as bar:
        found = _tune(bar, function, its_weights, list(structures), budget)
    for r in found["measured"]:
        line = f"{r['us']:10.1f} us measured {r['predicted_us']:10.1f} us predicted   {r['what']:.100}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"kept in {found['file']}", highlight=False)
    output.write_json(json_file, found)


def _tune(bar: Any, function: Any, weights: Any, structures: list[Any], budget: float) -> dict[str, Any]:
    import cortex
    from cortex.codegen.target import Target
    from cortex.cost.tuned import remember
    from cortex.frontend.trace import Trace
    from cortex.frontend.weights import Weights
    from cortex.options import Options
    from cortex.plan import Plan, Wishes

    trace = Trace(function, Weights(weights))
    trace.explore()
    trace.see(structures)
    traced = trace.model()
    plan = Plan(Target.host(), None, None, wishes=Wishes(trace, structures))
    task = bar.add_task("predicting", total=None)
    predicted = predictions(traced, plan, lambda done, total: bar.update(task, completed=done, total=total))
    automatic, *others = predicted
    chosen = [automatic, *sorted(others, key=lambda schedule: predicted[schedule])[: MEASURED - 1]]
    bar.update(task, description="compiling", total=len(chosen), completed=0)
    systems = []
    for schedule in chosen:
        systems.append(cortex.compile(function, weights, examples=structures, schedule=schedule))
        bar.advance(task)
    bar.update(task, description="measuring", total=max(budget, 1e-9), completed=0)
    batches = plan.wishes.batches or [structures]
    best, rounds = in_turns(systems, batches, budget, lambda spent: bar.update(task, completed=min(budget, spent)))
    order = sorted(range(len(chosen)), key=lambda i: best[i])
    measured = [
        {
            "us": round(best[i], 2),
            "predicted_us": round(predicted[chosen[i]], 2),
            "what": difference(chosen[i], automatic),
            "schedule": repr(chosen[i]),
        }
        for i in order
    ]
    folder, target = Options.from_environment().cache, plan.target
    file = remember(folder, traced, target.cpu, chosen[order[0]], {"rounds": rounds, "measured": measured})
    return {"file": str(file), "rounds": rounds, "measured": measured}


def predictions(
    traced: Model, plan: Plan, progress: Callable[[int, int], object] = lambda done, total: None
) -> dict[Schedule, float]:
    """Microseconds predicted for the automatic schedule, which is first, and for its neighbours.

    Of several requests, the geometric mean.
    """
    from cortex.compiler import stages
    from cortex.cost.candidates import neighbours
    from cortex.cost.predict import Predictor
    from cortex.errors import ScheduleError
    from cortex.ra.simplify import simplify

    found: dict[Schedule, float] = {}
    pairs = list(neighbours(*plan.on_recursion(simplify(traced))))
    for number, (recursion, choices) in enumerate(pairs):
        progress(number, len(pairs))
        with suppress(ScheduleError):
            *_, last = stages(traced, replace(plan, recursion=recursion, choices=choices))
            predict = Predictor(last.func, plan.machine())
            us = geometric_mean(predict(form).us for form in plan.wishes.requests(last.model))
            found.setdefault(last.schedule, us)
    return found


def in_turns(
    systems: list[Executable],
    batches: list[list[Any]],
    budget: float,
    progress: Callable[[float], object] = lambda spent: None,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[list[float], int]:
    """The least microseconds of each system, the geometric mean over the batches, and how many rounds there were."""
    least = [[float("inf")] * len(batches) for _ in systems]
    rounds, begin = 0, time.perf_counter()
    while rounds < LEAST_ROUNDS or time.perf_counter() - begin < budget:
        for (i, fast), (b, batch) in product(enumerate(systems), enumerate(batches)):
            fast(batch)  # its weights are in the caches when the clock starts
            start = clock()
            fast(batch)
            least[i][b] = min(least[i][b], (clock() - start) / 1e3)
        rounds += 1
        progress(time.perf_counter() - begin)
    return [geometric_mean(times) for times in least], rounds


def difference(schedule: Schedule, automatic: Schedule) -> str:
    """In a line, how a schedule differs from the automatic one."""
    if schedule == automatic:
        return "the automatic schedule"
    added = [repr(s) for s in schedule if s not in automatic.steps]
    left_out = [repr(s) for s in automatic if s not in schedule.steps]
    parts = [f"{word} {', '.join(steps)}" for word, steps in (("with", added), ("without", left_out)) if steps]
    return "; ".join(parts) or "other order"
