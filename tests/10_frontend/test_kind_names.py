"""Names of kinds are made from what nodes hold, and are identifiers wherever they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from frontend_meaning import Node, weights
from numpy.testing import assert_allclose

import cortex
from cortex.frontend.kind_names import kind_names
from cortex.ra.ir import Equals, Fact, IsNone, Value

TEXTS = ["1st", "", "a\nb", "x" * 500, "x" * 501, "né", "日本", '"quoted"', "9", "-1", "a b", "a_b", "\\", "%s", "\0"]


def test_any_value_gives_an_identifier() -> None:
    guards = [(Fact(Value(name), text),) for name in ("op", "1", "é") for text in TEXTS]
    guards += [(Fact(Equals("1", text), True),) for text in TEXTS] + [(Fact(IsNone("1"), False),)]
    names = kind_names(guards)
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.isascii() and len(name) < 100 for name in names)


@cortex.model
def valued(node: Any, w: Any) -> Any:
    h = w.grün * (len(str(node.op)) + node.é)
    return h if node.is_leaf else h + cortex.sum(valued(k, w) for k in node.children)


def test_kinds_of_any_text_are_compiled(tmp_path: Path) -> None:
    given = weights(grün=(4,))
    leaves = [Node(op=text, é=1.0, children=[]) for text in TEXTS]
    root = Node(op="", é=1.0, children=leaves)
    fast = cortex.compile(valued, given, examples=[root])
    assert_allclose(fast(root)[0], given["grün"] * (sum(map(len, TEXTS)) + len(leaves) + 1), rtol=1e-4)
    assert len(cortex.export(fast, tmp_path)) > 3


def test_a_kind_by_what_a_set_contains() -> None:
    torch = pytest.importorskip("torch")

    class Tagged(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.größe = torch.nn.Parameter(torch.ones(3))
            self.register_parameter('a "b"', torch.nn.Parameter(torch.ones(3)))

        def forward(self, node: Any) -> Any:
            h = self.größe * (2.0 if 1 in node.tags else 3.0) + getattr(self, 'a "b"') * (
                5.0 if "é" in node.tags else 7.0
            )
            return h + sum((self(child) for child in node.children), torch.zeros(3))

    module = Tagged().eval()
    leaf = Node(tags={1, 2}, children=[])
    root = Node(tags={"é"}, children=[leaf, Node(tags=set(), children=[])])
    compiled = cortex.compile(module, examples=[root])
    with torch.no_grad():
        torch.testing.assert_close(compiled(root), module(root))
