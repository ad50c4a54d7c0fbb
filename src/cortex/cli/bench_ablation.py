"""The ablation suite of `cortex bench`: progress while it runs, then a table with a line per cell."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from cortex.cli import output

if TYPE_CHECKING:
    from rich.console import Console

    from cortex.bench.ablation import Row


def run(
    json_file: str | None,
    choices: tuple[list[str], list[int] | None, list[int], list[int]],
    budget: float,
    data: Path | None,
) -> None:
    """Measure the models, hidden sizes, batch sizes and threads of `choices`; print and write the rows."""
    from cortex.bench.ablation import run_subject, subjects
    from cortex.options import Options

    models, hidden, batch, threads = choices
    console = output.console(json_file)
    todo = subjects(models, hidden, threads)
    rows: list[Row] = []
    with output.progress(console) as bar:
        task = bar.add_task("", total=len(todo) * len(batch))
        for subject in todo:
            bar.update(task, description=f"{subject.model} H={subject.hidden} threads {subject.threads}")
            for found in run_subject(subject, batch, data or Options.from_environment().data, budget):
                rows += found
                bar.advance(task)
    _print(console, rows)
    output.write_json(json_file, [row.as_json() for row in rows])


def _print(console: Console, rows: list[Row]) -> None:
    names = list(dict.fromkeys(row.rung for row in rows))
    table = []
    for cell, group in groupby(rows, lambda row: (row.model, row.hidden, row.batch, row.threads)):
        found = {row.rung: row for row in group}
        us = [f"{row.us:.0f}" if (row := found.get(name)) and row.us is not None else "" for name in names]
        table.append([*map(str, cell), *us])
    title = "Median us per batch, from objects to arrays; empty: nothing to do for that model"
    output.print_table(console, title, ("model", "H", "batch", "threads", *names), table)
