"""What users are told, as golden text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cortex


@dataclass
class Tree:
    children: tuple[Tree, ...] = ()
    op: str = ""


@cortex.model
def counting(node: Any, w: Any) -> Any:
    return w.by_length[len(node.op)] + cortex.sum(counting(k, w) for k in node.children)


WEIGHTS = {"by_length": np.ones((9, 2), np.float32)}
KNOWN = Tree((Tree(op="leaf"), Tree(op="leaf")), op="sum")


def said(call: Callable[[], Any]) -> str:
    with pytest.raises(cortex.CortexError) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]) -> None:
    monkeypatch.chdir(tmp_path)
    cortex.compile(counting, WEIGHTS, examples=KNOWN).save("plain.cortex")
    plain = cortex.load("plain.cortex")
    functions = {"children": lambda node: node.children, "fields": {"op": lambda node: node.op}}
    cortex.compile(counting, WEIGHTS, examples=KNOWN, **functions).save("functions.cortex")
    content = Path("plain.cortex").read_bytes()
    Path("short.cortex").write_bytes(content[:1000])
    Path("newer.cortex").write_bytes(content[:13] + b"\3" + content[14:])
    Path("other.cortex").write_text("weights")
    messages = [
        said(lambda: plain(Tree((Tree(op="leaf"), Tree(op="product")), op="sum"))),
        said(lambda: plain.update({"by_length": np.ones((3, 2))})),
        said(lambda: cortex.load("functions.cortex")),
        said(lambda: cortex.load("plain.cortex", fields={"opp": "op"})),
        said(lambda: cortex.load("plain.cortex", as_torch=True)),
        said(lambda: cortex.load("short.cortex")),
        said(lambda: cortex.load("newer.cortex")),
        said(lambda: cortex.load("other.cortex")),
        said(lambda: cortex.load("missing.cortex")),
    ]
    golden("errors/saved_models", "\n\n".join(messages))
