"""`cortex bench --suite ablation` in small: its rows, its ladder, and the memory that it counts."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cortex
from cortex import zoo
from cortex.bench.ablation import MODELS, compile_rungs
from cortex.bench.data import workload
from cortex.bench.ladder import AUTOMATIC, LADDER, beside
from cortex.bench.memory import request_bytes, torch_peak_bytes, weight_bytes
from cortex.cli.main import main
from cortex.codegen.target import Target

RUNGS = ["none", "batching", "fusion", "specialization", "packing", "tabulation", "automatic"]


def test_rows(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "rows.json"
    chosen = ["--models", "tree_gru", "--hidden", "16", "--batch", "1,2", "--budget", "0", "--json", str(file)]
    result = CliRunner().invoke(main, ["bench", "--suite", "ablation", *chosen])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    expected = [*RUNGS, "without batching", "without fusion", "refactoring"]
    assert [row["rung"] for row in rows] == expected * 2
    assert [row["batch"] for row in rows] == [1] * len(expected) + [2] * len(expected)
    for row in rows:
        assert (row["model"], row["hidden"], row["threads"], row["note"]) == ("tree_gru", 16, 1, "")
        assert 0 < row["us_min"] <= row["us"]
        assert row["linearize_us"] > 0
        assert row["peak_bytes"] > 0 < row["torch_peak_bytes"]
        assert (row["packed_bytes"] > 0) == (row["rung"] not in RUNGS[:4])
        assert (row["table_bytes"] > 0) >= (row["rung"] == "tabulation")
    assert "tree_gru, 1 thread" in result.output


def test_a_model_that_a_step_does_nothing_for() -> None:
    pytest.importorskip("torch")
    chosen = ["--models", "tree_rnn", "--hidden", "16", "--batch", "1", "--budget", "0", "--json", "-"]
    result = CliRunner().invoke(main, ["bench", "--suite", "ablation", *chosen])
    assert result.exit_code == 0, result.output
    rows = {row["rung"]: row for row in json.loads(result.stdout)}
    assert rows["packing"]["us"] is None
    assert rows["packing"]["note"] == "nothing to do: the same schedule as 'specialization'"
    assert rows["tabulation"]["us"] is None
    assert "'leaf' makes nothing but look-ups" in rows["tabulation"]["note"]
    assert rows["unrolling"]["us"] > 0


def test_an_unknown_model() -> None:
    result = CliRunner().invoke(main, ["bench", "--suite", "ablation", "--models", "tree_lstm,bert"])
    assert result.exit_code == 2
    assert "the suite has no model 'bert'; it has tree_fc, tree_rnn, tree_lstm" in result.output


@pytest.mark.parametrize("threads", [1, 2])
def test_every_rung_adds_something(threads: int) -> None:
    entry = zoo.load("tree_gru")
    requests = workload("tree_gru", 20, None)
    fast = cortex.compile(entry.model, entry.weights(64, 20))
    fast(requests.fresh(0, 3))
    all_rungs = (*LADDER, *beside("tree_gru"))
    schedules = {rung.name: rung.schedule(fast.traced, Target.host(), threads) for rung in all_rungs}
    assert len(set(schedules.values())) == len(all_rungs)
    assert [rung.against for rung in LADDER] == ["", *(rung.name for rung in LADDER[:-1])]
    assert {rung.against for rung in all_rungs[1:]} <= set(schedules)
    for lower, upper in itertools.pairwise(LADDER):  # in the steps on the recursion or in the loops
        assert (lower.recursion == upper.recursion) != (lower.loops == upper.loops)


def test_every_rung_has_the_same_answers() -> None:
    entry = zoo.load("mv_rnn")
    requests = workload("mv_rnn", 20, None)
    compiled = compile_rungs(entry, entry.weights(32, 20), requests.fresh(0, 3), 1)
    expected = getattr(compiled.programs[AUTOMATIC](requests.fresh(3, 3)), entry.states[0])
    assert set(compiled.programs) | set(compiled.notes) == set(compiled.against)
    for fast in compiled.programs.values():
        answer = getattr(fast(requests.fresh(3, 3)), entry.states[0])
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_eager_programs_agree_with_the_zoo(model: str) -> None:
    torch = pytest.importorskip("torch")
    from cortex.bench import eager
    from cortex.bench.peer_weights import peer_weights

    entry = zoo.load(model)
    weights = entry.weights(12, 50)
    requests = workload(model, 50, None)
    reference = entry.reference(weights)
    with torch.inference_mode():
        expected = torch.stack([getattr(reference(tree), entry.states[0]) for tree in requests.fresh(0, 4)])
        found = eager.make(model, peer_weights(model, weights))(requests.fresh(0, 4))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_memory_of_a_request_by_hand() -> None:
    entry = zoo.load("tree_rnn")
    fast = cortex.compile(entry.model, entry.weights(32, 20))
    batch = workload("tree_rnn", 20, None).fresh(0, 2)
    form = fast.linearize(batch)
    nodes = form.sizes["num_nodes"]
    linear = 4 * sum(array.size for array in form.arrays.values())
    # Fused, the model keeps nothing but its state, 32 floats at every node.
    assert request_bytes(fast.compiled.func, form, threads=1, answer=256) == linear + 4 * 32 * nodes + 256
    assert weight_bytes(fast) == {"packed": 0, "tables": 0}


def test_peak_of_torch_counts_what_is_alive_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")

    def run() -> object:
        a = torch.ones(1000)
        b = torch.ones(500)
        del a
        return b, torch.ones(600)

    assert 6000 <= torch_peak_bytes(run) < 6100
    assert capfd.readouterr() == ("", "")
