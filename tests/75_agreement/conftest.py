"""The agreement tests use `four_ways` of tests/fuzz and the structures of this folder and of tests/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fuzz")]


@pytest.fixture(autouse=True)
def one_thread_of_torch() -> None:
    """PyTorch takes one thread, so that its results do not depend on the machine."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
