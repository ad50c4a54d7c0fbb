"""docs/scheduling*.md are what the steps' docstrings say now, and every docstring says what a step needs to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cortex.schedule.schedule import LOOP_STEPS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["scheduling.md", "scheduling_threads.md", "scheduling_gpu.md"])
def test_the_page_is_up_to_date(page: str, tmp_path: Path) -> None:
    program = ROOT / "benchmarks" / "scheduling_page.py"
    subprocess.run([sys.executable, str(program), str(tmp_path / page)], check=True)
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert (tmp_path / page).read_text(encoding="utf-8") == written, (
        f"run: python benchmarks/scheduling_page.py docs/{page}"
    )


@pytest.mark.parametrize("step", LOOP_STEPS, ids=lambda s: s.__name__)
def test_a_docstring_has_before_after_and_legal(step: type) -> None:
    text = step.__doc__ or ""
    assert text.index("before:") < text.index("after:") < text.index("legal:")
