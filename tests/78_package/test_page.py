"""The program of docs/backends.md does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

from c_program import WARNINGS, checked
from c_tools import found

import cortex
from cortex import zoo

PAGE = Path(__file__).parents[2] / "docs" / "backends.md"


def test_program_of_the_page(tmp_path: Path) -> None:
    leaf, inner = (lambda word: SimpleNamespace(children=[], word=word)), (lambda *kids: SimpleNamespace(children=kids))
    tree = inner(leaf(17), inner(leaf(4), leaf(23)))
    entry = zoo.load("tree_lstm")
    fast = cortex.compile(entry.model, entry.weights(256, 100), examples=[tree])
    cortex.export(fast, tmp_path)
    match = re.search(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert match is not None
    (tmp_path / "program.c").write_text(match[1])
    sources = [*sorted(tmp_path.glob("*.c")), tmp_path / "tree_lstm.o"]
    checked([found("gcc"), *WARNINGS, "-O2", *sources, "-pthread", "-lm", "-o", tmp_path / "program"])
    printed = checked([tmp_path / "program", tmp_path / "tree_lstm.safetensors"])
    want = fast(tree).h
    assert printed == f"{want[0]:.6f} {want[255]:.6f}\n"
