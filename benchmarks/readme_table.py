"""Put the rows of `cortex bench --suite recursive --json FILE` into the table of a Markdown file.

python benchmarks/readme_table.py bench.json README.md
"""

from __future__ import annotations

import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

START, END = "<!-- table: benchmarks/readme_table.py -->", "<!-- end of table -->"
SYSTEMS = ("cortex", "torch-eager", "torch-batched", "limit")
HEADER = ("model", "H", "batch", "cortex", "eager", "batched", "limit", "eager / cortex", "batched / cortex")


def cell(rows: list[dict[str, Any]]) -> list[str]:
    """One line of the table from the rows of one model, hidden size and batch size."""
    us = {row["system"]: row["us"] for row in rows}
    first = rows[0]
    times = [f"{us[system]:,.0f}" for system in SYSTEMS]
    ratios = [f"{us[peer] / us['cortex']:.1f}" for peer in ("torch-eager", "torch-batched")]
    return [first["model"], str(first["hidden"]), str(first["batch"]), *times, *ratios]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows on one thread as a Markdown table, and what they were measured on."""
    rows = [row for row in rows if row["threads"] == 1]
    lines = [HEADER, ("---",) + ("--:",) * (len(HEADER) - 1)]
    for _, group in groupby(rows, lambda row: (row["model"], row["hidden"], row["batch"])):
        lines.append(tuple(cell(list(group))))
    shapes = "; ".join(f"{row['model']}: {row['data']}" for row in {row["model"]: row for row in rows}.values())
    limit = next(row["form"] for row in rows if row["system"] == "limit")
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\nStructures: {shapes}. Limit: {limit}."


def main(rows_file: str, markdown_file: str) -> None:
    rows = json.loads(Path(rows_file).read_text(encoding="utf-8"))
    page = Path(markdown_file)
    text = page.read_text(encoding="utf-8")
    block = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    if not block.search(text):
        sys.exit(f"{markdown_file} has no block from {START} to {END}")
    filled = f"{START}\n{table(rows)}\n{END}"
    page.write_text(block.sub(lambda _: filled, text, count=1), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
