"""What commands print: tables and progress on the terminal, JSON where it was asked for.

Tables and progress go to standard error when JSON goes to standard output, so that a pipe gets JSON alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def console(json_file: str | None) -> Console:
    """Where human-readable output goes."""
    from rich.console import Console

    return Console(stderr=json_file == "-")


def progress(to: Console) -> Progress:
    """A progress bar with counts and the time left; it vanishes when done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=to, transient=True)


def print_table(to: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose columns are right-aligned but for the first."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    to.print(table)


def write_json(json_file: str | None, value: Any) -> None:
    """Write `value` to a file, to standard output for "-", nowhere for None."""
    if json_file is None:
        return
    text = json.dumps(value, indent=1) + "\n"
    if json_file == "-":
        sys.stdout.write(text)
    else:
        Path(json_file).write_text(text, encoding="utf-8")
