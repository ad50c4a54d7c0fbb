"""`cortex bench`: measure Cortex beside its peers and its limit, or the machine itself."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli import output

if TYPE_CHECKING:
    from rich.console import Console

    from cortex.bench.convolutions import Layer
    from cortex.bench.recursive import Row

SUITES = ("recursive", "training", "ablation", "machine", "conv", "matmul", "ranking")
SHOWN = ("cortex", "cortex-tables", "torch-eager", "torch-batched", "limit")
BUDGETS = {"recursive": 8.0, "training": 10.0, "ablation": 3.0, "conv": 1.0, "matmul": 0.5, "ranking": 5.0}


def _numbers(_: click.Context, option: click.Parameter, text: str | None) -> list[int] | None:
    """Parse "1,10"."""
    if text is None:
        return None
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < 1:
        raise click.BadParameter(f"{text!r} is not a list of positive numbers such as 1,10", param=option)
    return values


def _models(suite: str, text: str | None) -> list[str]:
    """Parse "tree_lstm,gru"; all models of the suite without it."""
    from cortex.bench import ablation, recursive

    known = {"recursive": recursive.MODELS, "ablation": ablation.MODELS}[suite]
    models = list(known) if text is None else text.split(",")
    for model in models:
        if model not in known:
            raise click.BadParameter(
                f"the suite has no model {model!r}; it has {', '.join(known)}", param_hint="'--models'"
            )
    return models


def _layers(text: str | None) -> list[Layer]:
    """Parse "resnet50.0,resnet50.3"; all layers without it."""
    from cortex.bench.convolutions import RESNET50

    known = {layer.name: layer for layer in RESNET50}
    wanted = list(known) if text is None else text.split(",")
    for name in wanted:
        if name not in known:
            message = f"the suite has no model {name!r}; it has {next(iter(known))} to {list(known)[-1]}"
            raise click.BadParameter(message, param_hint="'--models'")
    return [known[name] for name in wanted]


@click.command()
@click.option("--suite", type=click.Choice(SUITES), default="recursive", show_default=True, help="What to measure.")
@click.option("--json", "json_file", metavar="FILE", help="Write the rows to FILE; - is standard output.")
@click.option("--models", metavar="A,B", help="Models of the suite.  [default: all]")
@click.option("--hidden", metavar="N,M", callback=_numbers, help="Hidden sizes.  [default: two per model]")
@click.option(
    "--batch",
    metavar="1,10",
    callback=_numbers,
    help="Batch sizes.  [default: 1,10; 1,25,256 for training; 1 for conv]",
)
@click.option("--threads", metavar="1", default="1", callback=_numbers, help="Threads.", show_default=True)
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    help="Seconds per cell.  [default: 8 for recursive, 10 for training, 3 for ablation, 1 for conv, 0.5 for matmul, "
    "5 for ranking]",
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder that may hold sst/test.txt.  [default: CORTEX_DATA]"
)
def command(
    suite: str,
    json_file: str | None,
    models: str | None,
    hidden: list[int] | None,
    batch: list[int] | None,
    threads: list[int],
    budget: float | None,
    data: Path | None,
) -> None:
    """Measure latency, in microseconds per batch.

    The suite "recursive" times Cortex, PyTorch node by node (torch-eager) and PyTorch batched by hand level by level
    (torch-batched), interleaved in one process, from Python objects to arrays, and computes the machine's limit. Cortex
    does all work; cortex-tables and cortex-tables-sharing do less. Other peers run where CORTEX_PEERS has them.
    The suite "training" times a step of training a TreeLSTM, forward and backward, per tree.
    The suite "ablation" times Cortex with one optimization after the other, on all models of the paper.
    The suite "machine" measures the figures that limit is made of.
    The suite "conv" times the convolutions of ResNet-50 beside oneDNN, in GFLOP/s; "ranking" says how well costs that
    have seen no measurement rank measured variants of them. The models of both are resnet50.0 to resnet50.19.
    The suite "matmul" times matrix products, square and skinny, beside MKL.
    """
    if suite == "machine":
        _machine(json_file)
        return
    seconds = BUDGETS[suite] if budget is None else budget
    if suite == "conv":
        from cortex.cli.bench_conv import run as run_conv

        run_conv(json_file, _layers(models), batch or [1], threads, seconds)
        return
    if suite == "matmul":
        from cortex.cli.bench_conv import run_products

        run_products(json_file, threads, seconds)
        return
    if suite == "ranking":
        from cortex.cli.bench_ranking import run as run_ranking
        from cortex.options import Options

        run_ranking(json_file, _layers(models), seconds, data or Options.from_environment().data)
        return
    if suite == "training":
        _training(json_file, hidden, batch or [1, 25, 256], threads, seconds)
        return
    chosen = (_models(suite, models), hidden, batch or [1, 10], threads)
    if suite == "ablation":
        from cortex.cli.bench_ablation import run

        run(json_file, chosen, seconds, data)
    else:
        _recursive(json_file, chosen, seconds, data)


def _machine(json_file: str | None) -> None:
    from cortex.bench.machine import figures
    from cortex.options import Options

    console = output.console(json_file)
    with console.status("measuring this machine"):
        found = figures(Options.from_environment().cache, anew=True)
    rows = [("multiply-add, one core", f"{found.peak_gflops:.0f} GFLOP/s")]
    rows += [(f"read {size}, one core", f"{rate:.0f} GB/s") for size, rate in found.read_gbs.items()]
    rows += [(name, f"{us:.2f} us") for name, us in found.call_us.items()]
    output.print_table(console, f"{found.cpu}, {found.lanes} lanes", ("figure", "value"), rows)
    output.write_json(json_file, asdict(found))


def _recursive(
    json_file: str | None,
    choices: tuple[list[str], list[int] | None, list[int], list[int]],
    budget: float,
    data: Path | None,
) -> None:
    from cortex.bench.machine import figures
    from cortex.bench.recursive import cells, run_cell
    from cortex.options import Options

    options = Options.from_environment()
    console = output.console(json_file)
    todo = cells(*choices)
    rows: list[Row] = []
    with output.progress(console) as bar:
        task = bar.add_task("measuring this machine", total=len(todo))
        machine = figures(options.cache).machine()
        for cell in todo:
            bar.update(task, description=f"{cell.model} H={cell.hidden} batch {cell.batch} threads {cell.threads}")
            rows += run_cell(cell, machine, data or options.data, budget, options.peers)
            bar.advance(task)
    _print(console, rows)
    output.write_json(json_file, [row.as_json() for row in rows])


def _training(
    json_file: str | None, hidden: list[int] | None, batch: list[int], threads: list[int], budget: float
) -> None:
    from cortex.bench.machine import figures
    from cortex.bench.training import cells, run_cell
    from cortex.options import Options

    console = output.console(json_file)
    todo, rows = cells(hidden, batch, threads), []
    with output.progress(console) as bar:
        task = bar.add_task("measuring this machine", total=len(todo))
        machine = figures(Options.from_environment().cache).machine()
        for cell in todo:
            bar.update(task, description=f"{cell.model} H={cell.hidden} batch {cell.batch} threads {cell.threads}")
            rows += run_cell(cell, machine, budget)
            bar.advance(task)
    table = []
    for (inputs, size, count, team), group in groupby(rows, lambda r: (r.inputs, r.hidden, r.batch, r.threads)):
        us = {row.system: row.us for row in group}
        ours = us.pop("cortex")
        pairs = [text for value in us.values() for text in (f"{value:.0f}", f"{value / ours:.2f}x")]
        table.append([f"{inputs}/{size}", str(count), str(team), f"{ours:.0f}", *pairs])
    columns = ("in/H", "batch", "threads", "cortex", "eager", "", "batched", "", "limit", "")
    output.print_table(console, "Median us per tree and step (x: times what Cortex takes)", columns, table)
    output.write_json(json_file, [row.as_json() for row in rows])


def _print(console: Console, rows: list[Row]) -> None:
    table = []
    for cell, group in groupby(rows, lambda row: (row.model, row.hidden, row.batch, row.threads)):
        us = {row.system: row.us for row in group}
        ours, *others = (us[system] for system in SHOWN)
        pairs = [text for value in others for text in (f"{value:.0f}", f"{value / ours:.2f}x")]
        table.append([*map(str, cell), f"{ours:.0f}", *pairs])
    title = "Median us per batch, from objects to arrays (x: times what Cortex takes)"
    columns = ("model", "H", "batch", "threads", "cortex", "tables", "", "eager", "", "batched", "", "limit", "")
    output.print_table(console, title, columns, table)
    for model, source in {row.model: row.data for row in rows}.items():
        forms = {row.form: None for row in rows if row.system == "torch-batched" and row.model == model}
        console.print(f"{model}: {source}; batched: {' or '.join(forms)}", highlight=False)
    for row in rows:
        if row.system not in SHOWN:
            where = f"{row.model} H={row.hidden} batch {row.batch} threads {row.threads}"
            console.print(f"{where}: {row.system} {row.us:.0f} us", highlight=False)
