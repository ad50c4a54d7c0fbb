"""Options of the tests of schedules: how many random ones, from which seed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

SCHEDULES = 1000 if os.environ.get("CORTEX_FUZZ") == "long" else 60


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("random schedules")
    group.addoption("--schedules", type=int, default=SCHEDULES, help=f"random schedules to try (default {SCHEDULES})")
    group.addoption("--first-schedule", type=int, default=0, help="seed of the first schedule (default 0)")


@pytest.fixture
def schedules(request: pytest.FixtureRequest) -> range:
    """The seeds to try. pytest knows the options only when it is given this folder; else they have their defaults."""
    first = request.config.getoption("--first-schedule", default=0)
    return range(first, first + request.config.getoption("--schedules", default=SCHEDULES))
