"""The automatic scheduler, and what tuning leaves for the next compilation."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import cortex
from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import Plan, stages
from cortex.cost import choose
from cortex.cost.machine import Machine
from cortex.cost.tuned import file_of, remember, remembered
from cortex.cost.typical import typical
from cortex.runtime import measure_machine
from cortex.schedule.default import Choices, Registers, TileChoice, default_schedule

CHOSEN = Choices(inputs_first=False, nests=(("inner_t1_n", TileChoice(2, 3, 4)), ("leaf_t2_i", TileChoice())))
TARGET = Target.x86("avx512")


def test_best_first_and_no_worse_than_the_default(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "TILES", (TileChoice(), TileChoice(4, 1), TileChoice(1, 2)))
    p = program("tree_fc", 64)

    def programs(choices: Choices) -> Any:
        *_, last = stages(p.traced, Plan(TARGET, choices=choices))
        return last.func, last.schedule

    found = choose.candidates(programs, typical(p.model), Machine.example())
    times = [c.us for c in found]
    assert times == sorted(times)
    assert len({c.schedule for c in found}) == len(found) > 3
    assert any(c.schedule == p.stages[-1].schedule for c in found)
    assert found[0].choices.tile.tallest != 1


def test_compile_chooses_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "TILES", (TileChoice(), TileChoice(4, 1)))
    monkeypatch.setattr(measure_machine, "here", Machine.example)
    entry = zoo.load("tree_fc")
    weights, trees = entry.weights(32, 30), [entry.structures(Random(0), 1, 30)[0].left.left.left]
    chosen = cortex.compile(entry.model, weights, examples=trees, choices="auto")
    default = cortex.compile(entry.model, weights, examples=trees, choices=Choices())
    assert (chosen(trees).h == default(trees).h).all()


def test_choices_are_values_that_print_as_python() -> None:
    assert eval(repr(CHOSEN)) == CHOSEN
    assert hash(eval(repr(CHOSEN))) == hash(CHOSEN)


def test_choices_reach_the_schedule(program: Any) -> None:
    p = program("tree_fc", 64)
    lowered = next(s.func for s in p.stages if s.name == "lowered")
    registers = Registers(32, 16)
    by_default = default_schedule(lowered, registers)
    assert default_schedule(lowered, registers, Choices()) == by_default
    lower = default_schedule(lowered, registers, Choices(tile=TileChoice(2, 3, 1)))
    assert lower != by_default
    nest = next(s.nest for s in by_default if hasattr(s, "nest"))
    assert default_schedule(lowered, registers, Choices(nests=((nest, TileChoice(2, 3, 1)),))) == lower


def test_the_winner_is_remembered(program: Any, tmp_path: Path) -> None:
    m = program("tree_rnn").traced
    assert remembered(tmp_path, m, "cpu") is None
    remember(tmp_path, m, "cpu", CHOSEN, {"rounds": 3})
    assert remembered(tmp_path, m, "cpu") == CHOSEN
    assert remembered(tmp_path, m, "another cpu") is None
    assert remembered(tmp_path, program("tree_rnn", 5).traced, "cpu") is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"choices": {"fuse": true}}', "__import__('os').abort()"])
def test_an_unreadable_file_is_no_winner(text: str, program: Any, tmp_path: Path) -> None:
    m = program("tree_rnn").traced
    remember(tmp_path, m, "cpu", CHOSEN, {})
    file_of(tmp_path, m, "cpu").write_text(text)
    assert remembered(tmp_path, m, "cpu") is None


def test_compile_uses_what_tuning_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path))
    entry = zoo.load("tree_rnn")
    weights, trees = entry.weights(20, 30), entry.structures(Random(0), 2, 30)
    before = cortex.compile(entry.model, weights, examples=trees)
    apart = Choices(fuse=False)
    remember(tmp_path, before.traced, Target.host().cpu, apart, {})
    after = cortex.compile(entry.model, weights, examples=trees)
    assert after.schedule != before.schedule
    assert after.schedule == cortex.compile(entry.model, weights, examples=trees, choices=apart).schedule
    assert (after(trees).h == before(trees).h).all()
