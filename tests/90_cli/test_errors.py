"""Mistakes on the command line, and errors raised on purpose, are told without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cortex.cli.main import main

MISTAKES = {
    "unknown_suite": ["bench", "--suite", "vision"],
    "unknown_bench_model": ["bench", "--models", "tree_lstm,tree_lstn"],
    "batch_not_numbers": ["bench", "--batch", "1,many"],
    "batch_zero": ["bench", "--batch", "0"],
    "unknown_zoo_model": ["explain", "tree_lstn"],
    "unknown_stage": ["explain", "tree_fc", "--stage", "ptx"],
    "export_without_directory": ["export", "tree_fc"],
    "no_such_file": ["explain", "missing.py:encode"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str, golden: Callable[[str, str], None]) -> None:
    result = CliRunner().invoke(main, MISTAKES[name], prog_name="cortex")
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    golden(f"cli/error_{name}", result.output.splitlines()[-1])


def test_function_missing_in_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    result = CliRunner().invoke(main, ["explain", f"{file}:encode"], prog_name="cortex")
    assert result.exit_code == 2
    assert "mine.py defines no 'encode'" in result.output


def test_error_of_a_model_has_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import cortex\n"
        "from cortex.structures.tree import Node\n"
        "@cortex.model\n"
        "def encode(node):\n"
        "    x = cortex.zeros(4)\n"
        "    return cortex.state(h=x @ cortex.zeros(3))\n"
        "examples = [Node()]\n"
    )
    result = CliRunner().invoke(main, ["explain", f"{file}:encode", "--examples", "examples"], prog_name="cortex")
    assert result.exit_code == 1
    assert result.output.startswith("ModelError: ")
    assert "mine.py, line 6" in result.output
    assert "Traceback" not in result.output
