"""Options of the tests of schedules: how many random ones, from which seed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("random schedules")
    group.addoption("--schedules", type=int, default=100, help="random schedules to try (default 100)")
    group.addoption("--first-schedule", type=int, default=0, help="seed of the first schedule")
