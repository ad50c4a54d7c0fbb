"""`cortex inspect` says what is in a file, and runs nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cortex import compiler
from cortex.cli.main import main
from cortex.codegen.target import Target


def inspect(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["inspect", *arguments])


def test_what_is_inside(make: Any, trees: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"fields": {"word": lambda node: node.word}, "target": Target.x86("avx2")}
    make("tree_lstm", examples=trees("tree_lstm"), **given).save(file)
    monkeypatch.setattr(compiler, "build", None)
    said = inspect(str(file))
    assert said.exit_code == 0, said.output
    size = f"{file.stat().st_size:,}"
    first, *rest = said.output.splitlines()
    assert first == f"model tree_lstm, {size} bytes, saved by Cortex 0.1.0"
    assert rest[:6] == [
        "kinds      leaf, inner",
        "children   children",
        "fields     word = a function: i64",
        "states     h: f32[8], c: f32[8]",
        "to be given again when it is loaded, as functions: word",
        "weights    6 arrays, 720 numbers",
    ]
    assert "bytes for x86-64-v3 (avx2, fma, sse2); 1 thread" in rest[6]
    assert "Tile(" in inspect(str(file), "--schedule").output


def test_a_module(file: Path) -> None:
    torch = pytest.importorskip("torch")
    import cortex

    class Node:
        children: tuple[Any, ...] = ()

    def total(node: Any, scale: float = 2.0) -> Any:
        h = torch.ones(3) * scale
        for child in node.children:
            h = h + total(child, scale)["h"]
        return {"h": h}

    cortex.compile(total, examples=[Node()]).save(file)
    lines = inspect(str(file)).output.splitlines()
    assert lines[0].startswith("torch module total, ")
    assert lines[2:4] == ["called with (node: a node, scale=2.0)", "returns    {'h': a tensor}"]


def test_what_is_no_saved_model(file: Path) -> None:
    file.write_text("something else")
    said = inspect(str(file))
    assert said.exit_code == 1 and "is no saved model" in said.stderr
