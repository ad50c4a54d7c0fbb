"""A folder of object code for one test, and a small model to fill it with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from small_zoo import make, trees  # noqa: F401

from cortex import compiler
from cortex.options import Options


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
