"""A compiled model, its report and a machine that is not measured."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import cortex
from cortex import zoo
from cortex.cost.machine import Machine
from cortex.runtime import measure_machine, report, timeline


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example machine, and few repetitions."""
    monkeypatch.setattr(measure_machine, "here", lambda cache=None: Machine.example())
    monkeypatch.setattr(report, "SECONDS", 0.0)
    monkeypatch.setattr(timeline, "SECONDS", 0.0)
    yield


@pytest.fixture(scope="session")
def fast() -> Any:
    """A tree_rnn, which compiles quickly."""
    entry = zoo.load("tree_rnn")
    return cortex.compile(entry.model, entry.weights(32, 50), examples=entry.structures(Random(0), 2, 50))


@pytest.fixture
def trees() -> list[Any]:
    """Three parse trees."""
    return zoo.load("tree_rnn").structures(Random(1), 3, 50)
