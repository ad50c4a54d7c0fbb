"""Options of the random tests: how many models, on how many batches each, from which seed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

FEW, MANY = (25, 4), (500, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    long_run = os.environ.get("CORTEX_FUZZ") == "long"
    models, structures = MANY if long_run else FEW
    group = parser.getgroup("random models")
    group.addoption("--models", type=int, default=models, help=f"random models to try (default {models})")
    group.addoption("--structures", type=int, default=structures, help=f"batches per model (default {structures})")
    group.addoption("--first-seed", type=int, default=0, help="seed of the first model")
    group.addoption("--seed", type=int, default=None, help="try this model only, and print a smaller one if it fails")
    group.addoption(
        "--interpreter-operations", type=float, default=1e5, help="interpret ILIR for requests up to about this size"
    )
