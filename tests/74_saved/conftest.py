"""Models to save, and a way to have them again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_zoo import make, trees  # noqa: F401

import cortex


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
