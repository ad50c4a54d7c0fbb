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
    """A table per model, with a line per rung and a column per cell."""
    for model, group in groupby(sorted(rows, key=lambda row: row.threads), lambda row: (row.threads, row.model)):
        of_model = list(group)
        cells = list(dict.fromkeys((row.hidden, row.batch) for row in of_model))
        us = {(row.rung, row.hidden, row.batch): row.us for row in of_model}
        lines = []
        for rung in dict.fromkeys(row.rung for row in of_model):
            found = [us[rung, hidden, batch] for hidden, batch in cells]
            lines.append([rung, *("" if value is None else f"{value:.0f}" for value in found)])
        threads = f"{model[0]} thread{'s' * (model[0] != 1)}"
        title = f"{model[1]}, {threads}: median us per batch, from objects to arrays"
        columns = ("with, one after the other", *(f"H={hidden} batch {batch}" for hidden, batch in cells))
        output.print_table(console, title, columns, lines)
        for note in dict.fromkeys(f"{row.rung}: {row.note}" for row in of_model if row.note):
            console.print(note, highlight=False, markup=False)
