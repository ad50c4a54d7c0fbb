"""Small files that ask for much: deep nesting, huge counts, what is no text. Each is read or refused at once."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cortex
from cortex.structures import read_conllu, read_listops, read_ptb
from cortex.structures.aiger import read_aiger
from cortex.structures.json_tree import children_at
from cortex.structures.postgres_plan import read_explain
from cortex.structures.tree import measure

DEEP = 100_000
PLAN = '{"Node Type":"Sort","Plans":['


def deep_plan() -> dict[str, Any]:
    plan: dict[str, Any] = {"Node Type": "Scan"}
    for _ in range(DEEP):
        plan = {"Node Type": "Sort", "Plans": [plan]}
    return plan


REFUSED: dict[str, Callable[[], Any]] = {
    "aiger_inputs": lambda: read_aiger(b"aig 67108864 67108864 0 0 0\n"),
    "aiger_latches": lambda: read_aiger(b"aig 60000000 0 60000000 0 0\n"),
    "aiger_outputs": lambda: read_aiger(b"aig 0 0 0 999999999999999 0\n"),
    "json_plan": lambda: read_explain('[{"Plan":' + PLAN * DEEP + '{"Node Type":"Scan"}' + "]}" * DEEP + "}]"),
    "json_unclosed": lambda: read_explain("[" * DEEP),
    "json_number": lambda: read_explain("9" * DEEP),
    "json_other": lambda: read_explain([{"Plam": deep_plan()}]),
    "json_children": lambda: children_at("Plans")({"Plans": (deep_plan(),)}),
    "ptb_unclosed": lambda: read_ptb("(1 " * DEEP),
    "ptb_word": lambda: read_ptb("w" * DEEP),
    "ptb_control": lambda: read_ptb("(1 \x1b[31mred\x07 y)"),
    "listops_unclosed": lambda: read_listops("1\t" + "[MAX " * DEEP),
    "listops_token": lambda: read_listops("1\t" + "x" * DEEP),
    "conllu_head": lambda: read_conllu("1\tw\t_\t_\t_\t_\t" + "9" * DEEP + "\troot\t_\t_"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_once(name: str, golden: Callable[[str, str], None]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(cortex.StructureError) as caught:
        REFUSED[name]()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # kilobytes
    golden(f"errors/structure/hostile_{name}", f"StructureError: {caught.value}")


def test_what_is_right_is_read_however_deep() -> None:
    assert measure(read_ptb("(1 " * DEEP + "(1 w)" + ")" * DEEP)[0]).levels == DEEP + 1
    assert measure(read_listops("1\t" + "[MAX " * DEEP + "1" + " ]" * DEEP)[0][1]).levels == DEEP + 1
    lines = (f"{i + 1}\tw\t_\t_\t_\t_\t{i}\troot\t_\t_" for i in range(DEEP // 10))
    assert measure(read_conllu("\n".join(lines))[0]).levels == DEEP // 10
    assert len(read_explain([{"Plan": deep_plan()}])) == 1
    assert len(read_aiger(b"aig 100000 100000 0 0 0\n").word) == 100_001


@pytest.mark.parametrize("read", [read_ptb, read_listops, read_conllu, read_explain])
def test_what_is_no_text(read: Callable[[Any], Any], tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(b"(1 \xff)")
    for source, said in ((path, "byte 3 is not UTF-8"), (Path("a\0b"), "embedded null byte")):
        with pytest.raises(cortex.StructureError, match=said):
            read(source)
