"""Programs of a peers' folder: they get the cell's data, run in turns with the rest, and are checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from cortex import zoo
from cortex.bench import peers
from cortex.bench.data import workload
from cortex.bench.peers_data import write_data
from cortex.bench.recursive import Cell, _in_rounds, _run_of
from cortex.bench.timing import Timing
from cortex.errors import InternalError

# Prints what the real program prints; reads the trees it is given.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    FILE *f = fopen("trees.bin", "rb");
    int trees = 0;
    if (!f || fread(&trees, 4, 1, f) != 1) return 1;
    for (int b = 1; b <= 10; b += 9)
        printf("{\"system\":\"c\",\"B\":%d,\"total_min\":%d.0,\"total_med\":%d.5,\"err\":1e-3,\"ok\":%s}\n",
               b, H, trees + atoi(argv[1]), OK);
}
"""


def zero_reference(trees: list[object]) -> np.ndarray:
    return np.zeros((len(trees), 32))


def folder_with(tmp_path: Path, ok: str) -> Path:
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits" / "treelstm.c").write_text(PROGRAM.replace("OK", f'"{ok}"'))
    return tmp_path


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    monkeypatch.setattr(peers, "_has_avx512", lambda: True)


def lstm_cell(folder: Path | None, batch: int = 1) -> object:
    entry = zoo.load("tree_lstm")
    requests = workload("tree_lstm", 50, None)
    return peers.peers_of(Cell("tree_lstm", 32, batch, 2), entry.weights(32, 50), requests, zero_reference, folder)


def test_no_folder_no_peers(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "none"):
        with lstm_cell(folder) as found:  # type: ignore[attr-defined]
            assert found == {}


@pytest.mark.usefixtures("anywhere")
def test_a_program_in_c(tmp_path: Path) -> None:
    with lstm_cell(folder_with(tmp_path, "true"), batch=10) as found:  # type: ignore[attr-defined]
        assert list(found) == ["treelstm.c"]
        assert found["treelstm.c"].run() == Timing(202.5, 32.0, peers.REPETITIONS, 20)  # 200 trees, 2 threads


@pytest.mark.usefixtures("anywhere")
def test_a_program_with_wrong_results_is_refused(tmp_path: Path) -> None:
    wrong = lstm_cell(folder_with(tmp_path, "false"))
    with wrong as found, pytest.raises(InternalError, match="off by"):  # type: ignore[attr-defined]
        found["treelstm.c"].run()


def test_trees_list_parents_first(tmp_path: Path) -> None:
    entry = zoo.load("tree_gru")
    requests = workload("tree_gru", 50, None)
    write_data(tmp_path, "tree_gru", 8, entry.weights(8, 50), requests, zero_reference)
    trees = json.loads((tmp_path / "trees.json").read_text())["trees"]
    assert len(trees) == len(requests.shapes)
    for tree in trees:
        for i, (left, right, word) in enumerate(zip(tree["left"], tree["right"], tree["word"], strict=True)):
            assert (left < 0) == (right < 0) == (word >= 0)
            assert left < 0 or (left > i and right > i)
    assert np.load(tmp_path / "w_treegru_8.npz")["Wzrh"].shape == (8, 24)


def test_a_program_is_run_again_while_the_machine_is_slow_but_not_for_ever() -> None:
    runs: list[int] = []

    def run() -> Timing:
        runs.append(len(runs))
        return Timing(float(len(runs)), 1.0, 2, 4)

    other = peers.Peer(run, "a program", False)
    slow = [True, False]
    assert _run_of(other, lambda: slow.pop(0)).us == 2.0
    assert _run_of(other, lambda: True).us == 5.0


def test_programs_worth_it_run_in_every_round() -> None:
    calls: list[str] = []

    def peer(name: str, turns: bool) -> peers.Peer:
        return peers.Peer(lambda: calls.append(name) or Timing(len(calls), 1.0, 2, 4), name, turns)  # type: ignore[func-returns-value]

    others = {"often": peer("often", True), "once": peer("once", False)}
    timings = _in_rounds({"ours": lambda batch: None}, others, [lambda: [0]] * 3, 0.0, lambda: False)
    assert calls == ["often", "often", "often", "once"]
    assert timings["often"] == Timing(2, 1.0, 6, 4)
    assert timings["ours"].repetitions == 3  # one turn in every round
    assert timings["ours"].batches == 3
