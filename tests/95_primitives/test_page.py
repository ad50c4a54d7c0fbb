"""The measured part of docs/primitives.md and its picture, from given figures."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    rows = [
        {"layer": layer, "shape": shape, "threads": threads, "system": system, "gflops_best": speed * threads}
        for threads in (1, 2)
        for layer, shape in (("resnet50.2", "64->64 1x1/1 56x56"), ("resnet50.17", "512->512 3x3/1 7x7"))
        for system, speed in (("cortex", 90.0), ("onednn", 60.0))
    ]
    ranking = [
        {"data": "here", "threads": 1, "cost": cost, "layers": 2, "variants": 80, "top": 0.9, "best_of_3": 0.95}
        for cost in ("random", "working sets", "movement")
    ]
    data = {
        "date": "2020-01-01",
        "peak": 100.0,
        "conv": rows,
        "matmul": rows,
        "times": [{"choosing": 0.1, "compiling": 0.2}],
        "variants": [{"layer": "resnet50.2", "speeds": [50.0, 90.0], "chosen": 90.0}],
        "ranking": ranking,
    }
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "primitives.json").write_text(json.dumps(data))
    shutil.copy(BENCHMARKS.parent / "docs" / "primitives.md", tmp_path / "docs")
    return tmp_path


def test_the_page_states_what_was_measured(root: Path) -> None:
    from primitives_page import write

    before = (root / "docs" / "primitives.md").read_text()
    write(root)
    text = (root / "docs" / "primitives.md").read_text()
    assert "| 2 convolutions, batch 1, oneDNN | 2 | 180 to 180 | 1.50 (1.50) |" in text
    assert "run at 90% of the peak" in text
    assert "| 64→64 1x1/1 56x56 | 90 | 60 | 180 | 120 |" in text
    assert "| this machine, 1 core, 2 layers, 80 variants | 0.900 (0.950) |" in text
    assert "0.10 to 0.10 s of processor time for a layer, compiling 0.20 to 0.20 s" in text
    assert text.partition("<!-- measured")[0] == before.partition("<!-- measured")[0]
    picture = (root / "docs" / "variants.svg").read_text()
    assert picture.count('class="dot"') == 2
    assert picture.count('class="ours"') == picture.count('class="other"') == 1
