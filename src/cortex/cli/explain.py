"""`cortex explain`: print a model at every stage on its way to machine code."""

from __future__ import annotations

import runpy
from pathlib import Path
from random import Random
from typing import Any

import click

EXAMPLES = 3
VOCABULARY = 1000
ON_REQUEST = ("llvm", "assembly")


@click.command()
@click.argument("model")
@click.option("--weights", type=click.Path(path_type=Path), help="Weights of FILE.py:FUNCTION (.npz, .safetensors).")
@click.option("--examples", metavar="NAME", help="List of structures in FILE.py, to find the kinds of nodes from.")
@click.option("--hidden", type=click.IntRange(min=1), default=32, show_default=True, help="Hidden size, zoo models.")
@click.option("--stage", "wanted", multiple=True, metavar="NAME", help="Print this stage only; may be repeated.")
def command(model: str, weights: Path | None, examples: str | None, hidden: int, wanted: tuple[str, ...]) -> None:
    """Print MODEL at every stage: RA, ILIR, its schedule, and LLVM with --stage llvm.

    MODEL is the name of a model of the zoo (tree_lstm, gru, ...) or FILE.py:FUNCTION.
    """
    subject, its_weights, structures = _subject(model, weights, examples, hidden)
    from cortex.compiler import stages

    texts = dict(stages(subject, its_weights, examples=structures))
    for name in wanted:
        if name not in texts:
            raise click.BadParameter(f"there is no stage {name!r}; there are {', '.join(texts)}", param_hint="--stage")
    for name in wanted or [name for name in texts if name not in ON_REQUEST]:
        click.secho(f"== {name} ==", bold=True)
        click.echo(texts[name].rstrip("\n") + "\n")


def _subject(model: str, weights: Path | None, examples: str | None, hidden: int) -> tuple[Any, Any, list[Any]]:
    """The model, its weights and structures to find its kinds from."""
    if ":" in model:
        return _from_file(model, weights, examples)
    from cortex import zoo

    if model not in zoo.ENTRIES:
        raise click.BadParameter(
            f"the zoo has no {model!r}; it has {', '.join(zoo.ENTRIES)}. For a model of your own give FILE.py:FUNCTION",
            param_hint="MODEL",
        )
    entry = zoo.ENTRIES[model]
    return entry.model, entry.weights(hidden, VOCABULARY), entry.structures(Random(0), EXAMPLES, VOCABULARY)


def _from_file(model: str, weights: Path | None, examples: str | None) -> tuple[Any, Any, list[Any]]:
    file, _, name = model.rpartition(":")
    if not Path(file).is_file():
        raise click.BadParameter(f"{file!r} is not a file; give FILE.py:FUNCTION", param_hint="MODEL")
    names = runpy.run_path(file)
    for wanted, hint in ((name, "MODEL"), (examples, "--examples")):
        if wanted is not None and wanted not in names:
            raise click.BadParameter(f"{Path(file).name} defines no {wanted!r}", param_hint=hint)
    return names[name], {} if weights is None else weights, names[examples] if examples else []
