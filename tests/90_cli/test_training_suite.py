"""`cortex bench --suite training` in small: its rows, and the limit that they are compared with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from cortex.bench.limit import Machine
from cortex.bench.training import Cell, limit_us
from cortex.cli.main import main


def test_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    arguments = ["bench", "--suite", "training", "--hidden", "8", "--batch", "2", "--budget", "0", "--json", str(file)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    assert [row["system"] for row in rows] == ["cortex", "torch-eager", "torch-batched", "limit"]
    assert all(row["us"] > 0 and row["batch"] == 2 and row["hidden"] == 8 for row in rows)


def test_limit() -> None:
    machine = Machine(peak=100.0, l2=1e9, beyond=1e9, l2_bytes=1 << 20)  # memory costs nothing
    one, two = (limit_us(Cell("tree_lstm", 300, 150, 1, t), [2, 1], machine) for t in (1, 2))
    macs = 2 * 3 * 150 * 300 + 5 * 150**2
    assert one == pytest.approx(3 * 2 * macs / 100e3)
    assert two == pytest.approx(one / 2)
