"""The tables of docs/backends.md about GPUs say of every model what the issue of residency needs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from cortex import zoo
from cortex.codegen.gpu import nvrtc
from cortex.codegen.gpu.ptxas import REGISTERS
from cortex.codegen.gpu.target import CUDA_SHARED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "backends_page.py"))


def rows(name: str) -> list[dict[str, str]]:
    start = f"<!-- table: {name}, by benchmarks/backends_page.py -->\n"
    block = PAGE.split(start)[1].split("\n<!-- end of table -->")[0].splitlines()
    head, _, *lines = ([cell.strip() for cell in line.strip("| ").split("|")] for line in block)
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_kernels_of_all_models_are_resident() -> None:
    found = rows("kernels")
    wanted = {
        (name, str(hidden), form)
        for name, entry in zoo.ENTRIES.items()
        for hidden in entry.hidden
        for form in ("persistent", "per level")
    }
    assert {(r["model"], r["H"], r["form"]) for r in found} == wanted and len(found) == len(wanted)
    for r in found:
        _, x, y = map(int, r["groups x items"].split(" x "))
        assert all(0 < int(r[a]) * x * y <= REGISTERS for a in nvrtc.ARCHITECTURES)
        assert int(r["shared"].replace(",", "")) <= 1024 * CUDA_SHARED["sm_70"] and r["spilled"] == "0"
        assert r["form"] == "per level" or r["kernels"] == "1"


def test_predictions_are_for_the_models_of_the_paper(script: dict[str, Any]) -> None:
    found = rows("predictions")
    assert len(found) == len(script["PAPER"]) * 2 * 2 * 2
    by_form: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for r in found:
        by_form.setdefault((r["model"], r["H"], r["batch"]), {})[r["form"]] = r
    for pair in by_form.values():
        once, levels = pair["persistent"], pair["per level"]
        assert once["launches"] == "1" and int(once["barriers"]) > 0
        assert int(levels["launches"]) > 1 and levels["barriers"] == "0"
        assert float(once["weights, MB"]) <= float(levels["weights, MB"])
    assert re.search(r"\*\*This is a model and not a measurement\.\*\*", PAGE)


def test_tables_are_written_in_their_places(script: dict[str, Any]) -> None:
    head, line = ("model", "H"), ("tree_fc", "256")
    text = script["table"](head, [line])
    assert text == "| model | H |\n| --- | ---: |\n| tree_fc | 256 |"
    new = script["filled"](PAGE, {"kernels": text})
    assert text in new and script["filled"](new, {"kernels": text}) == new
    with pytest.raises(SystemExit, match="has no block"):
        script["filled"]("nothing", {"kernels": text})
