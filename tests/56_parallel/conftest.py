"""Zoo models compiled for several threads, whatever their size."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import cortex
from cortex import compiler, zoo
from cortex.schedule.default import Choices
from cortex.schedule.parallel_default import Sharing, parallel_schedule

VOCAB = 50


@pytest.fixture
def always_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share out even functions so small that it does not pay."""
    monkeypatch.setattr(compiler, "parallel_schedule", partial(parallel_schedule, least_work=0))
    monkeypatch.setenv("CORTEX_VERIFY", "1")


@pytest.fixture
def compiled(always_parallel: None) -> Callable[..., tuple[Any, list[Any]]]:
    """`compiled(name, hidden, threads, count, mapping)`: a model of the zoo and structures to run it on."""

    def build(
        name: str, hidden: int, threads: int, count: int = 3, mapping: Sharing | None = None, **more: Any
    ) -> tuple[Any, list[Any]]:
        entry = zoo.load(name)
        trees = entry.structures(random.Random(hidden), count, VOCAB)
        choices, weights = Choices(parallel=mapping), entry.weights(hidden, VOCAB)
        fast = cortex.compile(entry.model, weights, examples=trees, threads=threads, choices=choices, **more)
        return fast, trees

    return build
