"""Errors that a stand-in causes in Python's own functions are no errors of nodes, though code handles them."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch import nn

import cortex

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Node:
    def __init__(self, word: str, children: tuple[Node, ...] = ()) -> None:
        self.word, self.children = word, list(children)


def trees() -> list[Node]:
    return [Node("a", (Node("b"), Node("?", (Node("c"),)))), Node("z"), Node("!", (Node("!"), Node("q")))]


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(27, 4)

    def number(self, node: Any) -> int:
        raise NotImplementedError

    def forward(self, node: Any) -> Any:
        h = self.table(torch.tensor(self.number(node)))
        for child in node.children:
            h = h + self(child)
        return torch.tanh(h)


class RealText(Words):
    def number(self, node: Any) -> int:
        try:
            return LETTERS.index(str(node.word))
        except ValueError:
            return 26


class BareExcept(Words):
    def number(self, node: Any) -> int:
        try:
            return LETTERS.index(node.word)
        except:  # noqa: E722
            return 26


class Both(Words):
    def number(self, node: Any) -> int:
        try:
            return LETTERS.index(node.word)
        except (ValueError, TypeError):
            return 26


class Suppressed(Words):
    def number(self, node: Any) -> int:
        found = 26
        with contextlib.suppress(Exception):
            found = ord(node.word) - ord("a")
        return found if 0 <= found < 26 else 26


class Derived(Words):
    def number(self, node: Any) -> int:
        try:
            return LETTERS.index(node.word[0])
        except Exception:
            return 26


class OwnError(Words):
    """A TypeError of the user's own making, which has nothing to do with what stands for nodes."""

    def number(self, node: Any) -> int:
        try:
            return len(5) if node.children else 1  # type: ignore[arg-type]
        except TypeError:
            return 2


@pytest.mark.parametrize("module", [RealText, Derived, OwnError])
def test_as_uncompiled(module: type[Words]) -> None:
    made = module().eval()
    with torch.no_grad():
        fast = cortex.compile(made, examples=trees()[1:2], check=False)
        for tree in trees():
            torch.testing.assert_close(fast(tree), made(tree))


@pytest.mark.parametrize("module", [BareExcept, Both, Suppressed])
def test_refused_with_a_remedy(module: type[Words]) -> None:
    with torch.no_grad(), pytest.raises(cortex.ModelError, match=r"real values only: write str\(node\.word\)") as error:
        cortex.compile(module().eval(), examples=trees(), check=False)
    assert "NodeField" not in str(error.value)


def test_functions() -> None:
    @cortex.model
    def encode(node: Any, w: Any) -> Any:
        try:
            found = LETTERS.index(node.word)
        except Exception:
            found = 26
        return w.table[found] + cortex.sum(encode(child, w) for child in node.children)

    weights = {"table": torch.rand(27, 4).numpy()}
    with pytest.raises(cortex.ModelError, match="real values only"):
        cortex.compile(encode, weights, examples=trees(), check=False)
