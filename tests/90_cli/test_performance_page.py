"""benchmarks/performance_page.py: the numbers, names and picture that it makes of docs/performance.json."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT / "benchmarks" / "performance_page.py"
START, END = "<!-- table: benchmarks/performance_page.py -->", "<!-- end of table -->"
SLOWER = {"limit": 0.8, "cortex-tables": 0.7, "torch-eager": 10.0, "torch-batched": 2.5, "jax": 2.0, "treelstm.c": 1.1}


def cell(model: str, batch: int, threads: int, us: float, **others: float) -> dict[str, Any]:
    systems: dict[str, dict[str, float]] = {
        name: {"us": us * ratio, "us_min": us * ratio / 2} for name, ratio in (SLOWER | others).items()
    }
    systems["cortex"] = {"us": us, "us_min": us * 0.8, "peak_bytes": 1_300_000, "needed_bytes": 1_000_000}
    key = {"model": model, "hidden": 256, "batch": batch, "threads": threads, "data": "sequences"}
    return key | {"systems": systems}


def data() -> dict[str, Any]:
    chance = {"seed": 7, "family": "binary", "hidden": 64, "nodes": 9, "us": 3.0, "us_min": 2.0, "limit_us": 2.0}
    return {
        "date": "2030-01-02",
        "load": 0.1,
        "machine": {"name": "A <fast> one", "cores": 2, "caches": {"L2": "1M"}, "lanes": 16}
        | {"peak_gflops": 115.0, "read_gbs": {"32K": 200.0}},
        "versions": {"python": "3.11.1"},
        "seconds_per_cell": 3.0,
        "suite": [
            cell(model, batch, threads, us / threads, **others)
            for threads in (1, 2)
            for model, batch, us, others in (("gru", 1, 100.0, {}), ("gru", 10, 900.0, {"limit": 0.2, "jax": 1.02}))
        ],
        "random": [chance | {"threads": t, "over_limit": 1.5 * t} for t in (1, 2)],
        "narrow": [
            {
                "model": "gru",
                "hidden": 512,
                "batch": 1,
                "weights": w,
                "us": us,
                "faster": 90 / us,
                "deviation": {"h": 3e-5},
            }
            for w, us in (("f32", 90.0), ("int16", 50.0))
        ],
        "callers": {"one": 1000.0, "two": 1900.0},
        "compiling": {"TreeLSTM, cold": 612.3, "TreeLSTM, warm": 51.2, "new kind, cold": 281.0},
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "performance.json").write_text(json.dumps(data()))
    (tmp_path / "README.md").write_text(f"before\n{START}\nold\n{END}\nafter\n")
    return tmp_path


def pages(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, "--pages", "--root", root], capture_output=True, text=True)


def test_the_page_states_ratios_and_names_the_worst(project: Path) -> None:
    assert pages(project).returncode == 0
    text = (project / "docs" / "performance.md").read_text()
    assert "Measured on 2030-01-02 on A <fast> one, 2 cores" in text
    assert "| time over the limit, geometric mean of 2 cells | 2.50 | 2.50 |" in text  # sqrt(1.25 * 5)
    assert "| least time over the limit, geometric mean | 2.00 | 2.00 |" in text
    assert "| time over the limit, worst cell | 5.00 (gru 256, batch 10) |" in text
    assert "| faster than the best peer, worst cell | 1.02x (gru 256, batch 10: jax) |" in text
    assert "| random cells: time over the limit, geometric mean | 1.50 | 3.00 |" in text
    assert "| gru | 256 | 1 | 80 | 100 | 70 | 1,000 | 250 | 200 | 110 | 1.25 | 10.0 | 2.00 |" in text
    assert "| 256 | 1 | 1 | 100 | 110 | 1.10 |" in text
    assert "geometric mean 1.30" in text
    assert "1.90 times as many" in text
    assert "| gru | 512 | 1 | int16 | 50 | 1.80x | 3.0e-05 |" in text
    assert "| new kind, cold | 281 |" in text
    assert "Could not be run here, and so not compared with: onnxruntime." in text


def test_the_readme_keeps_what_is_around_its_table(project: Path) -> None:
    for _ in range(2):  # filling it again changes nothing
        assert pages(project).returncode == 0
    text = (project / "README.md").read_text()
    assert text.startswith(f"before\n{START}\nMeasured on 2030-01-02")
    assert text.endswith(f"{END}\nafter\n")
    assert "| gru | 256 | 10 | 900 | 5.00 | 10.0 | 1.02 | 450 | 5.00 | 10.0 | 1.02 |" in text
    assert "* Against a TreeLSTM written by hand in AVX-512 intrinsics: 1.10 to 1.10 times its speed" in text
    assert "* Weights in 16 bits (int16), batch 1, one thread, over fp32: gru 512 1.80x (h off by 3.0e-05)." in text
    assert "at most 1.30 times states and weights." in " ".join(text.split())
    assert "612 ms, 51 ms with object code" in " ".join(text.split())
    assert "old" not in text


def test_figures_of_a_busy_machine_are_no_claims(project: Path) -> None:
    assert pages(project).returncode == 0
    assert "no claims" not in (project / "README.md").read_text()
    (project / "docs" / "performance.json").write_text(json.dumps(data() | {"load": 3.0}))
    assert pages(project).returncode == 0
    for name in ("README.md", "docs/performance.md"):
        assert "load average 3.0" in " ".join((project / name).read_text().split())


def test_the_chart_has_a_mark_for_every_system(project: Path) -> None:
    assert pages(project).returncode == 0
    root = ElementTree.fromstring((project / "docs" / "performance.svg").read_text())
    classes = [e.get("class") for e in root.iter() if e.get("class")]
    for style in ("cortex", "tables", "limit", "eager", "batched", "peer"):
        assert classes.count(style) == 4 + 1, style  # two cells on one and on two threads, and the legend


def test_a_readme_without_a_place_for_the_table_is_refused(project: Path) -> None:
    (project / "README.md").write_text("nothing here\n")
    result = pages(project)
    assert result.returncode == 1
    assert "has no block" in result.stderr


def test_pages_are_those_of_the_data() -> None:
    """Whoever changes the data or the way it is told runs `benchmarks/performance_page.py --pages`."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        from performance_page import documents
    finally:
        sys.path.pop(0)
    kept = json.loads((PROJECT / "docs" / "performance.json").read_text())
    for name, text in documents(kept, (PROJECT / "README.md").read_text()).items():
        assert (PROJECT / name).read_text() == text, name


def test_measuring_in_small(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    for name in ("CORTEX_CACHE", "CORTEX_DATA", "CORTEX_PEERS"):
        monkeypatch.setenv(name, str(project / "none"))
    choice = ["--models", "tree_fc", "--hidden", "16", "--threads", "1", "--budget", "0", "--random", "1"]
    choice += ["--compiled", "0"]
    done = subprocess.run([sys.executable, SCRIPT, "--root", project, *choice], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = json.loads((project / "docs" / "performance.json").read_text())
    assert [(row["model"], row["hidden"], row["batch"], row["threads"]) for row in kept["suite"]] == [
        ("tree_fc", 16, 1, 1),
        ("tree_fc", 16, 10, 1),
    ]
    assert len(kept["random"]) == 1
    assert {row["weights"] for row in kept["narrow"]} == {"f32", "bf16", "fp16", "int16", "int8"}
    assert "tree_fc 16, batch 10" in (project / "docs" / "performance.md").read_text()
