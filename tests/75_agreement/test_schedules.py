"""A schedule can be printed, kept, given back and left out; the numbers stay."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cortex
from cortex import zoo
from cortex.cli.main import main
from cortex.errors import ScheduleError
from cortex.schedule.schedule import Schedule, namespace
from cortex.schedule.vectorize import Vectorize

VOCAB = 50


@pytest.mark.parametrize("name", ["tree_lstm", "tree_gru", "mv_rnn", "lstm"])
def test_a_schedule_survives_printing_and_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    entry = zoo.load(name)
    weights, trees = entry.weights(20, VOCAB), entry.structures(random.Random(0), 3, VOCAB)
    fast = cortex.compile(entry.model, weights)
    fast.schedule.save(tmp_path / "plan.py")
    kept = Schedule.load(tmp_path / "plan.py")
    assert kept == fast.schedule == eval(repr(kept), namespace())
    again = cortex.compile(entry.model, weights, schedule=kept)
    plain = cortex.compile(entry.model, weights, schedule=Schedule(()))
    for state in range(len(entry.states)):
        assert np.array_equal(again(trees).nodes[state], fast(trees).nodes[state])
        np.testing.assert_allclose(plain(trees).nodes[state], fast(trees).nodes[state], rtol=1.3e-6, atol=1e-5)


def test_a_wrong_schedule_is_refused() -> None:
    entry = zoo.load("tree_rnn")
    with pytest.raises(ScheduleError, match="has no loop 'nowhere'"):
        cortex.compile(entry.model, entry.weights(8, VOCAB), schedule=Schedule((Vectorize("nowhere", 16),)))


def test_explain_takes_a_schedule(tmp_path: Path) -> None:
    Schedule(()).save(tmp_path / "plan.py")
    arguments = ["explain", "tree_rnn", "--schedule", str(tmp_path / "plan.py"), "--stage", "schedule"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0 and "Schedule(())" in result.output
