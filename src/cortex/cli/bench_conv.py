"""The conv and matmul suites of `cortex bench`: a line per shape, and the geometric mean over them."""

from __future__ import annotations

from itertools import groupby
from statistics import geometric_mean
from typing import TYPE_CHECKING

from cortex.cli import output

if TYPE_CHECKING:
    from rich.console import Console

    from cortex.bench.convolutions import Layer, Row


def run(json_file: str | None, layers: list[Layer], batch: list[int], threads: list[int], budget: float) -> None:
    """Measure layers; print and write the rows."""
    from cortex.bench.convolutions import run_layer

    console = output.console(json_file)
    todo = [(layer, b, t) for t in threads for b in batch for layer in layers]
    rows: list[Row] = []
    with output.progress(console) as bar:
        task = bar.add_task("", total=len(todo))
        for layer, b, t in todo:
            bar.update(task, description=f"{layer.name} {layer.shape()} batch {b} threads {t}")
            rows += run_layer(layer, b, t, budget)
            bar.advance(task)
    _print(console, rows)
    output.write_json(json_file, [row.as_json() for row in rows])


def run_products(json_file: str | None, threads: list[int], budget: float) -> None:
    """Measure matrix products; print and write the rows."""
    from cortex.bench.convolutions import PRODUCTS, run_product

    console = output.console(json_file)
    rows: list[Row] = []
    with output.progress(console) as bar:
        task = bar.add_task("", total=len(threads) * len(PRODUCTS))
        for t in threads:
            for product in PRODUCTS:
                bar.update(task, description=f"{product.shape()} threads {t}")
                rows += run_product(product, t, budget)
                bar.advance(task)
    _print(console, rows)
    output.write_json(json_file, [row.as_json() for row in rows])


def _print(console: Console, rows: list[Row]) -> None:
    for (threads, batch), group in groupby(rows, lambda row: (row.threads, row.batch)):
        of_cell = list(group)
        pairs = list(zip(of_cell[::2], of_cell[1::2], strict=True))
        ratios = [ours.gflops_best / theirs.gflops_best for ours, theirs in pairs]
        table = [
            [
                ours.layer,
                ours.shape,
                f"{ours.gflops_best:.0f}",
                f"{theirs.gflops_best:.0f}",
                theirs.form,
                f"{ratio:.2f}x",
            ]
            for (ours, theirs), ratio in zip(pairs, ratios, strict=True)
        ]
        title = f"GFLOP/s of the fastest call, batch {batch}, {threads} thread{'s' * (threads != 1)}"
        output.print_table(console, title, ("layer", "shape", "cortex", of_cell[1].system, "", ""), table)
        mean, least = geometric_mean(ratios), min(ratios)
        console.print(f"geometric mean {mean:.2f}x, least {least:.2f}x", highlight=False)
