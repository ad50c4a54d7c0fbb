"""Every command says what it does, fast, and without loading the compiler."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from cortex.cli.main import COMMANDS, main


def test_lists_all_commands() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    command = main.get_command(click.Context(main), name)
    assert command is not None
    options = [p for p in command.params if isinstance(p, click.Option)]
    assert all(option.help and option.opts[0] in result.output for option in options)


@pytest.mark.parametrize("name", ["bench", "demo"])
def test_numbers_come_as_json_too(name: str) -> None:
    assert "--json FILE" in CliRunner().invoke(main, [name, "--help"]).output


def test_help_loads_neither_compiler_nor_torch() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from cortex.cli.main import main;"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0;"
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in ('torch', 'llvmlite', 'rich')))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []
