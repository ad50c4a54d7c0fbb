"""The machine suite: its kernels compute what they say, and figures are measured once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cortex.bench import machine
from cortex.cli.main import main
from cortex.codegen.target import Target
from cortex.ilir.verify import verify
from cortex.runtime.machine_kernels import READ_UNROLL, accumulators, aligned, kernel, multiply_add, read

TARGET = Target.host()


def test_kernels_verify() -> None:
    verify(multiply_add(TARGET))
    verify(read(TARGET))


def test_multiply_add_computes() -> None:
    x, out = aligned(2 * TARGET.lanes), aligned(accumulators(TARGET) * TARGET.lanes)
    x[:] = np.arange(x.size)
    out[:] = np.arange(out.size)
    products = x[: TARGET.lanes] * x[TARGET.lanes :]
    expected = out.reshape(-1, TARGET.lanes) + 3 * products
    kernel(multiply_add(TARGET), TARGET)(x, out, 3, 1)
    np.testing.assert_array_equal(out.reshape(-1, TARGET.lanes), expected)


def test_read_reads_everything() -> None:
    rows = 5
    x, out = aligned(rows * READ_UNROLL * TARGET.lanes), aligned(READ_UNROLL * TARGET.lanes)
    x[:] = np.arange(x.size)
    out[:] = 0
    kernel(read(TARGET), TARGET)(x, out, 2, rows)
    np.testing.assert_array_equal(out, 2 * x.reshape(rows, -1).sum(axis=0))


def test_figures_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.001)
    first = machine.figures(tmp_path)
    assert machine.figures(tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1
    limits = first.machine()
    assert limits.peak > 0 and limits.l2 > 0 and limits.beyond > 0 and limits.l2_bytes == first.l2_bytes
    monkeypatch.setattr(machine, "measure", lambda target, l2: pytest.fail("measured again"))
    machine.figures(tmp_path)


def test_the_better_of_two_measurements_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.001)
    first = machine.figures(tmp_path)
    slow = {size: rate / 2 for size, rate in first.read_gbs.items()} | {"32K": 1e9}
    later = replace(first, peak_gflops=2 * first.peak_gflops, read_gbs=slow, call_us=dict.fromkeys(first.call_us, 1e9))
    monkeypatch.setattr(machine, "measure", lambda target, l2: later)
    found = machine.figures(tmp_path, anew=True, known=first)
    assert found == replace(first, peak_gflops=later.peak_gflops, read_gbs=first.read_gbs | {"32K": 1e9})
    assert machine.figures(tmp_path) == found


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.001)
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "machine.json"
    result = CliRunner().invoke(main, ["bench", "--suite", "machine", "--json", str(file)])
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text())
    assert {"32K", "1M", "4M", "64M"} <= set(found["read_gbs"])
    assert "GFLOP/s" in result.output
