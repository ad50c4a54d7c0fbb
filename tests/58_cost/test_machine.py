"""The machine description: interpolation, and that it is measured once and kept as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cortex.cost.machine import KIB, MIB, Machine
from cortex.runtime import measure_machine


def test_rate_falls_with_distance() -> None:
    machine = Machine.example()
    rates = [machine.rate(size) for size in (1, 16 * KIB, 40 * KIB, MIB, 3 * MIB, 64 * MIB, 2**40)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == rates[1] == machine.reads[0][1]
    assert rates[-1] == rates[-2] == machine.reads[-1][1]
    assert machine.rate(machine.reads[3][0]) == pytest.approx(machine.reads[3][1])


def test_levels_have_names() -> None:
    machine = Machine.example()
    assert [machine.level(size) for size in (KIB, machine.l1, MIB, machine.l2, machine.l2 + 1)] == [
        "L1",
        "L1",
        "L2",
        "L2",
        "beyond L2",
    ]


def test_save_and_read(tmp_path: Path) -> None:
    Machine.example().save(tmp_path / "new" / "machine.json")
    assert Machine.read(tmp_path / "new" / "machine.json") == Machine.example()


def test_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_machine, "SECONDS", 0.02)  # longer than others are let on the processor
    first = measure_machine.here(tmp_path)
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["cpu"] == first.cpu
    monkeypatch.setattr(measure_machine, "measure", lambda *_: pytest.fail("measured again"))
    assert measure_machine.here(tmp_path) == first
    rates = [rate for _, rate in first.reads]
    assert first.fma > 0 and first.chain >= first.fma and rates == sorted(rates, reverse=True)
