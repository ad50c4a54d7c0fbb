"""`cortex`: the entry point.

A command's module is imported when the command is asked for, and imports the compiler when it runs, so that
`cortex --help` answers at once. What Cortex raises on purpose is printed without a traceback; exit code 1.
"""

from __future__ import annotations

from importlib import import_module

import click

from cortex.errors import CortexError, printable

COMMANDS = ("bench", "demo", "explain", "export", "inspect", "report", "targets", "tune", "verify")


class LazyCommands(click.Group):
    """The commands of `COMMANDS`, each the attribute `command` of the module with its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command called `cmd_name`."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"cortex.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; say what went wrong on purpose in the words of the error."""
        try:
            return super().invoke(ctx)
        except CortexError as error:
            for line in f"{type(error).__name__}: {error}".split("\n"):
                click.echo(printable(line), err=True)
            ctx.exit(1)


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cortex-recursive", message="%(version)s")
def main() -> None:
    """Compile recursive deep-learning models into one native call."""
