"""The model a command is about: one of the zoo by name, or a function in a file."""

from __future__ import annotations

import runpy
from pathlib import Path
from random import Random
from typing import Any

import click

EXAMPLES = 3
VOCABULARY = 1000


def subject(model: str, weights: Path | None, examples: str | None, hidden: int) -> tuple[Any, Any, list[Any]]:
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
