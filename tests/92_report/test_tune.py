"""`cortex tune` measures, remembers, and the next compilation finds it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

import cortex
from cortex import zoo
from cortex.cli.explain import EXAMPLES, VOCABULARY
from cortex.cli.main import main
from cortex.cli.tune import predictions
from cortex.codegen.target import Target
from cortex.cost import candidates
from cortex.cost.choose import ALWAYS
from cortex.cost.tuned import remember
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.plan import Plan, Wishes
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts
from cortex.schedule.default import DEFAULT
from cortex.schedule.narrow import Narrow
from cortex.schedule.registers import TileChoice
from cortex.schedule.schedule import Schedule
from cortex.schedule.windows import Windows

HIDDEN = 8


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


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_requests_have_what_every_neighbour_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "neighbours", lambda recursion, _: [(ALWAYS, None)])
    entry = zoo.load(name)
    structures = entry.structures(Random(0), 3, VOCABULARY)
    traced = Trace(entry.model, Weights(entry.weights(HIDDEN, VOCABULARY)))
    traced.explore()
    traced.see(structures)
    found = predictions(traced.model(), Plan(Target.host(), None, None, wishes=Wishes(traced, structures)))
    assert found and min(found.values()) > 0
    if name in ("lstm", "dag_rnn"):
        assert any(isinstance(step, Windows) for schedule in found for step in schedule)


def _tables(schedule: Schedule) -> int:
    return sum(isinstance(step, Tabulate | TabulateLeafProducts) for step in schedule)


def test_a_tuned_schedule_leaves_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has tables, windows, f32 weights and one thread; whoever asks for something else gets that."""
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))
    entry = zoo.load("dag_rnn")
    weights, examples = entry.weights(HIDDEN, VOCABULARY), entry.structures(Random(0), 3, VOCABULARY)
    tuned = cortex.compile(entry.model, weights, examples=examples, recursion=(*ALWAYS, Tabulate("leaf")))
    traced = Trace(entry.model, Weights(weights))
    traced.explore()
    traced.see(examples)
    remember(tmp_path, traced.model(), Target.host().cpu, tuned.schedule, {})
    want = np.asarray(tuned(examples)[0])

    def compiled(**asked: object) -> tuple[Schedule, float]:
        fast = cortex.compile(entry.model, weights, examples=examples, **asked)
        return fast.schedule, float(abs(np.asarray(fast(examples)[0]) - want).max())

    assert compiled() == (tuned.schedule, 0)
    assert compiled(table_bytes=1 << 30) == (tuned.schedule, 0)
    for few in (0, 10):
        schedule, difference = compiled(table_bytes=few)
        assert _tables(schedule) == 0 and difference < 1e-6
    for dtype, stored in (("int8", "i8"), ("bf16", "bf16")):
        schedule, difference = compiled(weights_dtype=dtype)
        assert [step.dtype for step in schedule if isinstance(step, Narrow)] == [stored] and 0 < difference < 0.05
    schedule, difference = compiled(threads=2)
    assert any("Parallel" in type(step).__name__ for step in schedule) and difference == 0
    assert _tables(compiled(recursion=ALWAYS)[0]) == 0
    assert compiled(choices=DEFAULT)[0] != tuned.schedule
    plain = Schedule(ALWAYS)
    assert compiled(schedule=plain)[0] == plain
