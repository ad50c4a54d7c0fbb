"""Fixtures that compile small models of the zoo quickly; a folder's conftest.py imports what its tests take."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.runtime.executable import Executable
from cortex.schedule.default import DEFAULT

VOCABULARY = 30


@pytest.fixture
def make() -> Callable[..., Executable]:
    """`make(model, hidden, **options)`: compile a model of the zoo, by fixed choices unless the options say else."""

    def compiled(name: str = "tree_rnn", hidden: int = 8, **options: Any) -> Executable:
        entry = zoo.load(name)
        options = {"choices": DEFAULT, "recursion": ALWAYS} | options
        return cortex.compile(entry.model, entry.weights(hidden, VOCABULARY), **options)

    return compiled


@pytest.fixture
def trees() -> Callable[..., list[Any]]:
    """`trees(model, seed)`: three structures for a model of the zoo."""
    return lambda name="tree_rnn", seed=0: zoo.load(name).structures(Random(seed), 3, VOCABULARY)
