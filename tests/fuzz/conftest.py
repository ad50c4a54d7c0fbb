"""Options of the random tests: how many models, on how many batches each, from which seed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from breadth import LONG

sys.path.insert(0, str(Path(__file__).parent))

MODELS, STRUCTURES = (500, 20) if LONG else (12, 3)
OPTIONS: tuple[tuple[str, type, float | None, str], ...] = (
    ("--models", int, MODELS, "random models to try"),
    ("--structures", int, STRUCTURES, "batches per model"),
    ("--first-seed", int, 0, "seed of the first model"),
    ("--seed", int, None, "try this model only, and print a smaller one if it fails"),
    ("--interpreter-operations", float, 1e5, "interpret ILIR for requests up to about this size"),
)
PROGRAMS: tuple[tuple[str, type, int | None, str], ...] = (
    ("--programs", int, 10_000 if LONG else 180, "random user programs to try; without the long run, few modules"),
    ("--first-program", int, 0 if LONG else 4000, "seed of the first program"),
    ("--program", int, None, "try this program only, and print a smaller one if it fails"),
    ("--nested", int, 2 if LONG else 1, "how far expressions of programs are nested"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    for title, options in (("random models", OPTIONS), ("random user programs", PROGRAMS)):
        group = parser.getgroup(title)
        for name, kind, default, text in options:
            group.addoption(name, type=kind, default=default, help=f"{text} (default {default})")


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, float | None]:
    """The options by name. pytest knows them only when it is given this folder; else they have their defaults."""
    return {name: request.config.getoption(name, default=default) for name, _, default, _ in OPTIONS}


@pytest.fixture
def program_options(request: pytest.FixtureRequest) -> dict[str, int | None]:
    """The same for programs."""
    return {name: request.config.getoption(name, default=default) for name, _, default, _ in PROGRAMS}
