"""`cortex verify`: what it prints, its JSON, and its exit code when something is not proven."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from cortex import compiler
from cortex.cli.main import main
from cortex.ilir.ir import Func
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Index, Int


def test_a_zoo_model_is_proven() -> None:
    result = CliRunner().invoke(main, ["verify", "tree_rnn", "--hidden", "8"])
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.output.splitlines()[2:5]] == ["lowered", "scheduled", "passes"]


@pytest.mark.parametrize("mapping", ["columns", "nodes", "trees"])
def test_the_program_for_several_threads_is_proven(mapping: str) -> None:
    result = CliRunner().invoke(
        main, ["verify", "tree_fc", "--hidden", "96", "--stage", "passes", "--parallel", mapping]
    )
    assert result.exit_code == 0, result.output


def test_the_program_that_is_chosen_is_proven() -> None:
    """With tables and products of leaves in it, which the steps that always pay do not make."""
    result = CliRunner().invoke(main, ["verify", "tree_lstm", "--hidden", "32", "--threads", "2", "--json", "-"])
    assert result.exit_code == 0, result.output


def test_json() -> None:
    result = CliRunner().invoke(main, ["verify", "tree_rnn", "--hidden", "8", "--stage", "lowered", "--json", "-"])
    (stage,) = json.loads(result.stdout)["stages"]
    assert stage["stage"] == "lowered"
    assert stage["accesses"] == stage["proven"] > 0
    assert stage["not_proven"] == []


def test_a_broken_lowering_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = compiler.lower

    def wrong(m: object, *further: object) -> Func:
        def shift(n: Node) -> Node:
            return Binary("add", n, Int(1)) if isinstance(n, Index) and n.fn == "child_left" else n

        f = right(m, *further)  # type: ignore[arg-type]
        return replace(f, body=tuple(rewrite(s, shift) for s in f.body))

    monkeypatch.setattr(compiler, "lower", wrong)
    result = CliRunner().invoke(main, ["verify", "tree_rnn", "--hidden", "8"])
    assert result.exit_code == 1
    assert "refuted: load state_h[child_left(" in result.output
    assert "fails at " in result.output


def test_unknown_model() -> None:
    result = CliRunner().invoke(main, ["verify", "tree_lstn"])
    assert result.exit_code == 2
    assert "the zoo has no 'tree_lstn'" in result.output
