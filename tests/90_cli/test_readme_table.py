"""benchmarks/readme_table.py fills the table of a page and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "readme_table.py"
START, END = "<!-- table: benchmarks/readme_table.py -->", "<!-- end of table -->"


def rows() -> list[dict[str, object]]:
    us = {"cortex": 100.0, "torch-eager": 1500.0, "torch-batched": 250.0, "limit": 80.0}
    same = {"model": "gru", "hidden": 256, "batch": 1, "threads": 1, "data": "sequences", "form": "as fast as light"}
    return [{**same, "system": system, "us": value, "us_min": value} for system, value in us.items()]


def test_fills_the_table(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    data.write_text(json.dumps(rows()))
    for _ in range(2):  # filling it again changes nothing
        subprocess.run([sys.executable, SCRIPT, data, page], check=True)
    text = page.read_text()
    assert text.startswith(f"before\n{START}\n| model |")
    assert text.endswith(f"{END}\nafter\n")
    assert "| gru | 256 | 1 | 100 | 1,500 | 250 | 80 | 15.0 | 2.5 |" in text
    assert "old" not in text


def test_refuses_a_page_without_a_table(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("nothing here\n")
    data.write_text(json.dumps(rows()))
    result = subprocess.run([sys.executable, SCRIPT, data, page], capture_output=True, text=True)
    assert result.returncode == 1
    assert "has no block" in result.stderr
