"""`cortex bench` in small: the rows it writes, and the limit and timing they are made with."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from cortex.bench import quiet, timing
from cortex.bench.data import workload
from cortex.bench.limit import Machine, limit_us
from cortex.bench.quiet import watch
from cortex.bench.timing import AGAIN, LONGEST_REST, REST, TURN, WAIT, WARM, Timing, come_to_rest, interleave
from cortex.cli.main import main

SYSTEMS = ["cortex", "cortex-tables", "cortex-tables-sharing", "torch-eager", "torch-batched", "limit"]
MACHINE = Machine(peak=100.0, l2=50.0, beyond=10.0, l2_bytes=1 << 20)


@pytest.fixture(autouse=True)
def no_peers_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CORTEX_PEERS", str(tmp_path / "none"))


class Clock:
    """Time that passes when a system says so, or somebody waits; the process is at work until `busy_until`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.busy_until = 0.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return min(self.now, self.busy_until)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What `timing` has instead of the module `time`."""
    fake = Clock()
    monkeypatch.setattr(timing, "time", fake)
    return fake


def test_all_work_is_done_by_default_and_tables_are_apart(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "rows.json"
    arguments = ["--models", "tree_gru", "--hidden", "64", "--batch", "1", "--budget", "0", "--json", str(file)]
    assert CliRunner().invoke(main, ["bench", *arguments]).exit_code == 0
    form = {row["system"]: row["form"] for row in json.loads(file.read_text())}
    assert "tables" not in form["cortex"]
    assert "tables of" in form["cortex-tables"]
    assert "tables of" in form["cortex-tables-sharing"]


def test_rows(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "rows.json"
    arguments = ["--models", "tree_fc", "--hidden", "16", "--batch", "1,10", "--budget", "0.05", "--json", str(file)]
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    assert [row["system"] for row in rows] == SYSTEMS * 2
    for row in rows:
        assert {"model", "hidden", "batch", "threads", "system", "us", "us_min"} <= set(row)
        assert (row["model"], row["hidden"], row["threads"]) == ("tree_fc", 16, 1)
        assert 0 < row["us_min"] <= row["us"]
        assert (row["peak_bytes"] is not None) == row["system"].startswith("cortex")
        assert row["peak_bytes"] is None or row["peak_bytes"] > row["needed_bytes"] > 0
    assert [row["batch"] for row in rows] == [1] * len(SYSTEMS) + [10] * len(SYSTEMS)
    assert "perfect binary trees" in result.output


def test_json_to_standard_output_is_json_alone() -> None:
    pytest.importorskip("torch")
    arguments = ["--models", "gru", "--hidden", "8", "--batch", "1", "--budget", "0", "--json", "-"]
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 0, result.output
    assert [row["system"] for row in json.loads(result.stdout)] == SYSTEMS


@pytest.mark.parametrize("model", ["tree_fc", "tree_lstm", "tree_gru", "mv_rnn", "dag_rnn", "lstm", "gru"])
def test_peers_agree_with_the_zoo(model: str) -> None:
    torch = pytest.importorskip("torch")
    from cortex import zoo
    from cortex.bench import batched, eager, scripted
    from cortex.bench.peer_weights import peer_weights

    entry = zoo.load(model)
    weights = entry.weights(12, 50)
    peers = peer_weights(model, weights)
    requests = workload(model, 50, None)
    reference = entry.reference(weights)
    with torch.inference_mode():
        expected = torch.stack([getattr(reference(tree), entry.states[0]) for tree in requests.fresh(0, 4)])
        runs = [eager.make(model, peers), batched.make(model, peers), scripted.make(model, peers)]
        for run in runs:
            if run is not None:
                torch.testing.assert_close(run(requests.fresh(0, 4)), expected, atol=1e-5, rtol=1e-5)


def test_limit_by_hand() -> None:
    # GRU, H=100: 3 * 100**2 multiply-adds per input and per step, 120,000 bytes of weights each.
    read = 120_000 / 50.0
    step = 2 * 30_000 / 100.0
    expected = max(3 * step, read) + 2 * max(step, read)
    assert limit_us("gru", 100, [1, 1, 1], MACHINE, threads=1) == pytest.approx(expected / 1e3)
    in_tables = limit_us("gru", 100, [1, 1, 1], MACHINE, threads=1, tables=True)
    assert in_tables == pytest.approx(2 * max(step, read) / 1e3)


def test_limit_beyond_the_cache() -> None:
    # One level of TreeFC, H=512: 2 MiB of weights, of which 7/8 MiB stay in L2.
    share = 0.875 * 2**20
    expected = share / 50.0 + (2**21 - share) / 10.0
    assert limit_us("tree_fc", 512, [2, 1], MACHINE, threads=1) == pytest.approx(expected / 1e3)
    assert limit_us("tree_fc", 512, [2, 1], MACHINE, threads=4) == pytest.approx(2**19 / 50.0 / 1e3)


def test_generated_workload_is_fresh_and_says_so() -> None:
    requests = workload("tree_lstm", 1000, None)
    assert requests.source == "generated parse trees"
    first, again = requests.fresh(0, 1)[0], requests.fresh(0, 1)[0]
    assert first is not again
    assert sum(requests.levels(0, 3)) == sum(len(shape) for shape in requests.shapes[:3])


def test_workload_from_a_treebank(tmp_path: Path) -> None:
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "test.txt").write_text("(3 (2 good) (2 (2 old) (2 film)))\n" * 200)
    requests = workload("tree_gru", 1000, tmp_path)
    assert requests.source == "Stanford Sentiment Treebank"
    assert requests.levels(0, 2) == [6, 2, 2]


def test_a_turn_starts_when_threads_of_the_last_one_rest(clock: Clock) -> None:
    clock.busy_until = 0.1
    come_to_rest()
    assert 0.1 < clock.now < 0.1 + 3 * REST
    start = clock.now
    come_to_rest()
    assert clock.now - start < 2 * REST


def test_a_turn_starts_though_threads_never_rest(clock: Clock) -> None:
    clock.busy_until = math.inf
    come_to_rest()
    assert LONGEST_REST <= clock.now < LONGEST_REST + 2 * REST


def test_the_start_of_a_turn_does_not_count_and_a_turn_goes_on(clock: Clock) -> None:
    calls, each = 0, 1 / 256

    def run(_: list[object]) -> None:
        nonlocal calls
        calls += 1
        clock.now += each

    found = interleave({"a": run}, [lambda: [object()]] * 4, REST + WARM + TURN, turns=1)["a"]
    untimed = calls - 4 * found.repetitions
    assert untimed == 4 + math.ceil(WARM / each)  # each batch once, then as many as fit into the warm-up
    assert found.repetitions == math.ceil(TURN / (4 * each))  # of one turn; turns of one pass would be three


def test_turns_of_a_slow_machine_do_not_count(clock: Clock) -> None:
    def measured(slow: list[bool]) -> Timing:
        """By a machine that is slow while the first of `slow` is; the last one stays."""

        def run(_: list[object]) -> None:
            clock.now += 1 / 64 if slow[0] else 1 / 1024

        def is_slow() -> bool:
            return slow.pop(0) if len(slow) > 1 else slow[0]

        return interleave({"a": run}, [lambda: [object()]] * 2, 1.0, turns=1, is_slow=is_slow)["a"]

    assert measured([True, True, False]) == measured([False])


def test_a_machine_that_stays_slow_is_measured_all_the_same(clock: Clock) -> None:
    def run(_: list[object]) -> None:
        clock.now += 1 / 1024

    budget, turn = 1.0, REST + WARM + TURN + WAIT
    found = interleave({"a": run}, [lambda: [object()]], budget, turns=2, is_slow=lambda: True)["a"]
    assert found.repetitions >= 2
    assert (AGAIN + 1) * budget < clock.now < (AGAIN + 1) * budget + 2 * turn


def test_the_machine_is_asked_for_as_much_as_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not watch(Machine(1.0, 1.0, 1.0, 1 << 20), 1)()  # a gigaflop per second: any machine does that
    monkeypatch.setattr(quiet, "TRIES", 2)
    assert watch(Machine(5000.0, 1.0, 1.0, 1 << 20), 2)()  # five thousand: no core does


def test_interleaving_times_each_system_on_new_objects() -> None:
    seen: dict[str, list[int]] = {"a": [], "b": []}
    kept = []

    def run(name: str, batch: list[object]) -> None:
        kept.append(batch)  # alive, so that ids differ
        seen[name].append(id(batch))

    timings = interleave(
        {"a": lambda batch: run("a", batch), "b": lambda batch: run("b", batch)}, [lambda: [object()]] * 4, 0.0
    )
    assert timings["a"].repetitions == timings["b"].repetitions == 3
    assert len(set(seen["a"] + seen["b"])) == len(seen["a"] + seen["b"])
    assert timings["a"].us_min <= timings["a"].us
