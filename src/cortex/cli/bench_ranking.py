"""The ranking suite of `cortex bench`: a line per cost, on the authors' measurements and on this machine's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cortex.cli import output

if TYPE_CHECKING:
    from cortex.bench.convolutions import Layer
    from cortex.bench.ranking import Ranked, Row


def run(json_file: str | None, layers: list[Layer], budget: float, data: Path) -> None:
    """Rank the measured variants; print and write the rows."""
    from cortex.bench.authors_variants import FILE
    from cortex.bench.ranking import authors, here, summary

    console = output.console(json_file)
    rows: list[Row] = []
    if (data / FILE).is_file():
        with console.status("the authors' measurements"):
            rows += authors(data)
    else:
        console.print(f"{data / FILE} is not there; only this machine is measured", highlight=False)
    found: list[Ranked] = []
    with output.progress(console) as bar:
        task = bar.add_task("", total=len(layers))
        for layer in layers:
            bar.update(task, description=f"{layer.name} {layer.shape()}")
            found.append(here(layer, budget))
            bar.advance(task)
    if found:
        rows += summary("here", 1, found)
    table = [
        [
            row.data, str(row.threads), row.cost, str(row.layers), str(row.variants),
            f"{row.top:.3f}", f"{row.best_of_3:.3f}", f"{row.spearman:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    title = "Speed of the variant a cost prefers, over that of the fastest; no cost has seen a measurement"
    columns = ("data", "threads", "cost", "layers", "variants", "top 1", "best of 3", "spearman")
    output.print_table(console, title, columns, table)
    output.write_json(json_file, [row.as_json() for row in rows])
