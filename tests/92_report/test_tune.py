"""`cortex tune` measures, remembers, and the next compilation finds it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import cortex
from cortex import zoo
from cortex.cli.explain import EXAMPLES, VOCABULARY
from cortex.cli.main import main
from cortex.cost import candidates
from cortex.schedule.registers import TileChoice


def test_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))
    monkeypatch.setattr(candidates, "TILES", (TileChoice(), TileChoice(2, 3)))
    file = tmp_path / "found.json"
    result = CliRunner().invoke(main, ["tune", "tree_rnn", "--hidden", "16", "--budget", "0", "--json", str(file)])
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text())
    times = [row["us"] for row in found["measured"]]
    assert times == sorted(times) and min(times) > 0 and found["rounds"] >= 3
    kept = json.loads(Path(found["file"]).read_text())
    assert kept["schedule"] == found["measured"][0]["schedule"]
    assert sum(row["what"] == "the automatic schedule" for row in found["measured"]) == 1
    entry = zoo.load("tree_rnn")
    examples = entry.structures(Random(0), EXAMPLES, VOCABULARY)
    fast = cortex.compile(entry.model, entry.weights(16, VOCABULARY), examples=examples)
    assert repr(fast.schedule) == kept["schedule"]


def test_tuning_needs_structures(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("import cortex\n\n\n@cortex.model\ndef f(node):\n    return cortex.zeros(4)\n")
    result = CliRunner().invoke(main, ["tune", f"{model}:f"])
    assert result.exit_code == 2
    assert "tuning needs structures; name a list of them with --examples" in result.output
