"""A folder of object code for one test, and a small model to fill it with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cortex
from cortex import compiler, zoo
from cortex.options import Options
from cortex.runtime.executable import Executable
from cortex.runtime.measure_machine import here

VOCABULARY = 30


class Kept:
    """What is kept in a folder, and how often the pipeline has run since this was made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiled = 0

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.code")) if self.folder.is_dir() else []


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """An empty cache for this test."""
    here()
    (tmp_path / "cache").mkdir()
    for figures in Options.from_environment().cache.glob("core-*.json"):  # measuring again would take long
        shutil.copy(figures, tmp_path / "cache")
    monkeypatch.setenv("CORTEX_CACHE", str(tmp_path / "cache"))
    found = Kept(tmp_path / "cache" / "code")
    generate = compiler._generate

    def counted(*arguments: Any) -> Any:
        found.compiled += 1
        return generate(*arguments)

    monkeypatch.setattr(compiler, "_generate", counted)
    return found


@pytest.fixture
def make() -> Callable[..., Executable]:
    """`make(model, hidden, **options)`: compile a model of the zoo, by fixed choices unless the options say else."""

    def compiled(name: str = "tree_rnn", hidden: int = 8, **options: Any) -> Executable:
        entry = zoo.load(name)
        options = {"choices": compiler.DEFAULT, "recursion": compiler.RECURSION_STEPS} | options
        return cortex.compile(entry.model, entry.weights(hidden, VOCABULARY), **options)

    return compiled


@pytest.fixture
def trees() -> Callable[..., list[Any]]:
    """`trees(model, seed)`: three structures for a model of the zoo."""
    return lambda name="tree_rnn", seed=0: zoo.load(name).structures(Random(seed), 3, VOCABULARY)
