"""Two lists that are folded, and code that knows a pair of their lengths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import cortex  # noqa: E402


class KnowsAPair(torch.nn.Module):
    """Both lists one after the other; other weights for one pair of lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = torch.nn.Embedding(10, 3)
        self.cell = torch.nn.Linear(6, 3)

    def fold(self, items: Any) -> Any:
        h = torch.zeros(3)
        for x in items:
            h = torch.tanh(self.cell(torch.cat([h, x])))
        return h

    def forward(self, node: Any) -> Any:
        tokens = self.fold(self.emb(torch.tensor(i)) for i in node.tokens)
        h = self.fold([tokens, *(self(child) for child in node.children)])
        return h * 2 if len(node.tokens) == 7 and len(node.children) == 6 else h


def node(tokens: int, children: int = 0) -> SimpleNamespace:
    return SimpleNamespace(tokens=[i % 10 for i in range(tokens)], children=[node(1 + i % 3) for i in range(children)])


def test_a_pair_of_lengths_that_the_code_knows() -> None:
    torch.manual_seed(0)
    module = KnowsAPair().eval()
    with torch.no_grad():
        fast = cortex.compile(module, examples=[node(3, 2), node(5, 4)], check=False)
        pairs = ((7, 5), (6, 6), (9, 3), (7, 6), (6, 7))
        rows = fast([node(*pair) for pair in pairs])  # compiled at once
        for pair, row in zip(pairs, rows, strict=True):
            torch.testing.assert_close(row, module(node(*pair)), msg=str(pair))
            assert torch.equal(fast(node(*pair)), row)
