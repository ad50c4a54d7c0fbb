"""Makes `random_convolutions` and `layer_lists` importable; threads share what is small, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _share_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.primitives.compiled.SHARING_NS", 0.0)
