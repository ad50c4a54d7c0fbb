"""Write docs/ablation.md from the rows of `cortex bench --suite ablation --json FILE`.

python benchmarks/ablation_page.py ablation.json docs/ablation.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

Row = dict[str, Any]
Cell = tuple[int, str, int, int]  # threads, model, hidden, batch

RUNGS = {
    "none": "one node at a time, one loop nest per operator",
    "batching": "+ nodes of one height together",
    "fusion": "+ nests that share their loops run together",
    "specialization": "+ leaves in code of their own, before the recursion, with all input products; hoisting",
    "packing": "+ weights packed in panels, register tiles, persistence",
    "tabulation": "+ what depends on a word alone looked up in tables",
    "automatic": "what `cortex.compile` does by default, against none",
    "without batching": "packing, but inner nodes one at a time",
    "without fusion": "packing, but one loop nest per operator",
    "two children": "packing, with code of its own for nodes of two children",
    "unrolling": "two levels of the recursion at a time",
    "refactoring": "the back edge of the recursion moved into the cell",
}


class Table:
    """The rows of one number of threads."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.by_cell: dict[Cell, dict[str, Row]] = {}
        for row in rows:
            cell = (row["threads"], row["model"], row["hidden"], row["batch"])
            self.by_cell.setdefault(cell, {})[row["rung"]] = row

    def factors(self, rung: str, wanted: Callable[[Row], bool] = lambda row: True) -> list[float]:
        """How many times faster `rung` is than the one it adds to, in every cell where it does something."""
        found = []
        for rungs in self.by_cell.values():
            row = rungs.get(rung)
            if row is not None and row["us"] is not None and row["against"] and wanted(row):
                found.append(_timed(rungs, row["against"])["us"] / row["us"])
        return found

    def mean(self, rung: str, wanted: Callable[[Row], bool] = lambda row: True) -> str:
        """The geometric mean of the factors, or a dash."""
        found = self.factors(rung, wanted)
        return f"{geometric_mean(found):.2f}" if found else "-"


def _timed(rungs: dict[str, Row], name: str) -> Row:
    """The row of a rung or, where it is the same program as the one it adds to, of that one."""
    row = rungs[name]
    return row if row["us"] is not None else _timed(rungs, row["against"])


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """A table whose first `text` columns are text."""
    every = [header, (*["---"] * text, *["--:"] * (len(header) - text)), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def summary(table: Table) -> str:
    """What each rung gives, over all models."""
    small = {model: min(row["hidden"] for row in table.rows if row["model"] == model) for model in models(table)}
    columns: list[tuple[str, Callable[[Row], bool]]] = [
        ("all", lambda row: True),
        ("batch 1", lambda row: row["batch"] == 1),
        ("batch 10", lambda row: row["batch"] == 10),
        ("H small", lambda row: row["hidden"] == small[row["model"]]),
        ("H large", lambda row: row["hidden"] != small[row["model"]]),
    ]
    lines = []
    for rung, words in RUNGS.items():
        found = table.factors(rung)
        if found:
            spread = f"{min(found):.2f} to {max(found):.2f}"
            lines.append([rung, words, *(table.mean(rung, wanted) for _, wanted in columns), spread, str(len(found))])
    return markdown(("step", "what it is", *(name for name, _ in columns), "from, to", "cells"), lines, text=2)


def models(table: Table) -> list[str]:
    """The models in the order they were measured."""
    return list(dict.fromkeys(row["model"] for row in table.rows))


def model_section(table: Table, model: str) -> str:
    """The latencies of one model, and what could not be measured."""
    cells = {cell: rungs for cell, rungs in table.by_cell.items() if cell[1] == model}
    first = next(iter(cells.values()))
    lines = [[rung, *(_latency(rungs[rung]) for rungs in cells.values())] for rung in first]
    text = markdown(("us per batch", *(f"H={c[2]}, batch {c[3]}" for c in cells)), lines)
    notes = dict.fromkeys(f"* {rung}: {reason(row['note'])}" for rung, row in first.items() if row["note"])
    source = first["none"]["data"]
    return "\n\n".join([f"### {model}, {source}", text, *(["\n".join(notes)] if notes else [])])


def reason(note: str) -> str:
    """The first sentence of a note, without the step that it may begin with."""
    return (note.partition("): ")[2] or note).split(". ")[0]


def _latency(row: Row) -> str:
    return "" if row["us"] is None else f"{row['us']:,.0f}"


def memory(table: Table) -> str:
    """Bytes of a request beside PyTorch's, and what is kept from call to call."""
    lines = []
    for (_, model, hidden, batch), rungs in table.by_cell.items():
        ours = [rungs["none"], _timed(rungs, "fusion"), rungs["automatic"]]
        batched = rungs["none"]["torch_batched_peak_bytes"]
        torch = [_kilobytes(rungs["none"]["torch_peak_bytes"]), "" if batched is None else _kilobytes(batched)]
        request = [_kilobytes(row["peak_bytes"]) for row in ours]
        kept = [_kilobytes(rungs["automatic"]["packed_bytes"]), _kilobytes(_timed(rungs, "tabulation")["table_bytes"])]
        lines.append([model, str(hidden), str(batch), *torch, *request, *kept])
    header = ("KB", "H", "batch", "torch by node", "torch by level", "none", "fusion", "automatic", "packed", "tables")
    return markdown(header, lines)


def _kilobytes(count: int) -> str:
    return f"{count / 1000:,.0f}"


def packed(table: Table, rung: str) -> str:
    """The most that a rung packs, in megabytes."""
    counts = [row["packed_bytes"] or 0 for row in table.rows if row["rung"] == rung]
    return f"{max(counts, default=0) / 1e6:.1f}"


def linearizing(table: Table) -> str:
    """How long it takes to make the linear form, and its share of the whole call."""
    lines = []
    for (_, model, hidden, batch), rungs in table.by_cell.items():
        row = rungs["automatic"]
        share = 100 * row["linearize_us"] / row["us"]
        one, many = rungs["none"]["linearize_us"], row["linearize_us"]
        lines.append([model, str(hidden), str(batch), f"{one:.1f}", f"{many:.1f}", f"{share:.0f}%"])
    return markdown(("model", "H", "batch", "none, us", "automatic, us", "of the call"), lines)


def page(rows: Sequence[Row], template: str) -> str:
    """The whole page: the template with its numbers, then the tables."""
    by_threads = {t: Table([row for row in rows if row["threads"] == t]) for t in sorted({r["threads"] for r in rows})}
    first = next(iter(by_threads.values()))
    numbers = {rung.replace(" ", "_"): first.mean(rung) for rung in RUNGS}
    numbers |= {f"{rung.replace(' ', '_')}_10": first.mean(rung, lambda r: r["batch"] == 10) for rung in RUNGS}
    numbers |= {f"{rung.replace(' ', '_')}_packed": packed(first, rung) for rung in ("two children", "unrolling")}
    parts = [template.format(**numbers).rstrip()]
    for threads, table in by_threads.items():
        words = f"{threads} thread{'s' * (threads != 1)}"
        parts += [f"## What each step gives, {words}", SUMMARY, summary(table)]
    for threads, table in by_threads.items():
        parts.append(f"## Latency, {threads} thread{'s' * (threads != 1)}")
        parts += [model_section(table, model) for model in models(table)]
    parts += ["## Memory", MEMORY, memory(first), "## Linearizing", LINEARIZING, linearizing(first)]
    return "\n\n".join(parts) + "\n"


SUMMARY = """Times faster than the step it adds to: the geometric mean over the cells in which the step does something,
and the smallest and largest factor among them."""

MEMORY = """Data of tensors at the peak of one request, the largest, without weights, in thousands of bytes. Cortex:
the linear form, the states of all nodes (all of which can be asked for afterwards), scratch, and the answer, as laid
out in the one piece of memory that a call runs in. PyTorch: the largest sum of live allocations that its profiler saw;
node by node a state is freed when its parent has read it, and the trees of a batch run one after the other. *packed*
and *tables* are kept from call to call beside the weights, by the automatic schedule and by tabulation."""

LINEARIZING = """Walking the user's objects into arrays, which is part of every latency above; measured apart, with the
arrays handed to Python, which takes a little longer than leaving them in place."""


def main(rows_file: str, page_file: str) -> None:
    """Read the rows and the template beside this program, write the page."""
    template = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    rows = json.loads(Path(rows_file).read_text(encoding="utf-8"))
    Path(page_file).write_text(page(rows, template), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
