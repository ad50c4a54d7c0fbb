"""Models to save, and a way to have them again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cortex
from cortex import compiler, zoo

VOCABULARY = 30


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.cortex"


@pytest.fixture
def again(file: Path) -> Callable[..., Any]:
    """`again(fast, **options)`: save it and load it."""

    def saved_and_loaded(fast: Any, **options: Any) -> Any:
        fast.save(file)
        return cortex.load(file, **options)

    return saved_and_loaded


@pytest.fixture
def make() -> Callable[..., Any]:
    """`make(model, hidden, **options)`: compile a model of the zoo, by fixed choices unless the options say else."""

    def compiled(name: str = "tree_rnn", hidden: int = 8, **options: Any) -> Any:
        entry = zoo.load(name)
        options = {"choices": compiler.DEFAULT, "recursion": compiler.RECURSION_STEPS} | options
        return cortex.compile(entry.model, entry.weights(hidden, VOCABULARY), **options)

    return compiled


@pytest.fixture
def trees() -> Callable[..., list[Any]]:
    """`trees(model, seed)`: three structures for a model of the zoo."""
    return lambda name="tree_rnn", seed=0: zoo.load(name).structures(Random(seed), 3, VOCABULARY)
