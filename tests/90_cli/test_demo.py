"""`cortex demo` on a few functions, and `cortex explain` on a model of the zoo."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import cortex
from cortex.cli.explain import subject_of
from cortex.cli.main import main


def test_demo() -> None:
    result = CliRunner().invoke(main, ["demo", "--limit", "40", "--hidden", "8", "--batch", "16", "--json", "-"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["functions"] == 40
    assert report["nodes"] > 40
    assert report["worst_error"] < 1e-5
    assert report["p50_us"] <= report["p99_us"]


def test_explain_prints_every_stage() -> None:
    result = CliRunner().invoke(main, ["explain", "tree_fc", "--hidden", "8"])
    assert result.exit_code == 0, result.output
    headings = [line for line in result.output.splitlines() if line.startswith("== ")]
    assert len(headings) >= 4
    assert "== llvm ==" not in headings


def test_explain_one_stage() -> None:
    result = CliRunner().invoke(main, ["explain", "tree_fc", "--hidden", "8", "--stage", "llvm"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("== llvm ==")
    assert "define" in result.output


@pytest.mark.parametrize("threads", [1, 2])
def test_explain_shows_what_compile_does(threads: int) -> None:
    asked = ["explain", "tree_lstm", "--hidden", "64", "--threads", str(threads), "--stage", "schedule"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0, result.output
    model, weights, examples = subject_of("tree_lstm", None, None, 64)
    fast = cortex.compile(model, weights, examples=examples, threads=threads)
    assert repr(fast.schedule) in result.output
    assert all(considered.text() in result.output for considered in fast.compiled.considered)
