"""`cortex bench --suite conv` and `--suite ranking` in small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cortex.bench.convolutions import RESNET50
from cortex.cli.main import main


def test_conv_rows(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "rows.json"
    arguments = ["bench", "--suite", "conv", "--models", "resnet50.2,resnet50.16", "--threads", "1,2", "--budget", "0"]
    result = CliRunner().invoke(main, [*arguments, "--json", str(file)])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    cells = [(row["layer"], row["threads"], row["system"]) for row in rows]
    layers, systems = ("resnet50.2", "resnet50.16"), ("cortex", "onednn")
    assert cells == [(layer, threads, system) for threads in (1, 2) for layer in layers for system in systems]
    for row in rows:
        assert {"layer", "shape", "batch", "threads", "system", "gflops", "gflops_best"} <= set(row)
        assert row["batch"] == 1
        assert 0 < row["gflops"] <= row["gflops_best"]
    assert "geometric mean" in result.output


def test_the_layers_are_those_of_the_paper() -> None:
    assert len(RESNET50) == len({layer.shape() for layer in RESNET50}) == 20
    total = sum(layer.convolution(1).flops for layer in RESNET50)
    assert total == pytest.approx(2.77e9, rel=0.02)


def test_ranking_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.bench.ranking.VARIANTS", 3)
    file = tmp_path / "rows.json"
    arguments = ["bench", "--suite", "ranking", "--models", "resnet50.2", "--budget", "0", "--data", str(tmp_path)]
    result = CliRunner().invoke(main, [*arguments, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "only this machine is measured" in " ".join(result.output.split())
    rows = {row["cost"]: row for row in json.loads(file.read_text())}
    assert set(rows) == {"random", "movement", "working sets"}
    assert all(0 < row["top"] <= row["best_of_3"] <= 1 for row in rows.values())


def test_unknown_layer() -> None:
    result = CliRunner().invoke(main, ["bench", "--suite", "conv", "--models", "vgg"])
    assert result.exit_code == 2
    assert "the suite has no model 'vgg'; it has resnet50.0 to resnet50.19" in " ".join(result.output.split())
