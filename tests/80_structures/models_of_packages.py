"""Models for structures of other packages, and the same computed by a recursion in the package's own terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import cortex

SIZE, VOCAB, LABELS = 5, 50, 9
_RNG = np.random.default_rng(0)
WEIGHTS = {
    "emb": _RNG.standard_normal((VOCAB, SIZE)).astype(np.float32),
    "kind": _RNG.standard_normal((LABELS, SIZE)).astype(np.float32),
    "U": (_RNG.standard_normal((SIZE, SIZE)) / 3).astype(np.float32),
}


@cortex.model
def words_below(node: Any, w: Any) -> Any:
    """Words at the leaves, and an order of children that matters."""
    if node.is_leaf:
        return cortex.tanh(w.emb[node.word])
    return cortex.tanh(w.U @ cortex.sum(words_below(k, w) for k in node.children) + words_below(node.children[0], w))


@cortex.model
def labelled(node: Any, w: Any) -> Any:
    """A label at every node, a word at the leaves."""
    x = w.kind[node.label] + cortex.sum(w.U @ labelled(k, w) for k in node.children)
    return cortex.tanh(x + w.emb[node.word] if node.is_leaf else x)


@cortex.model
def words_everywhere(node: Any, w: Any) -> Any:
    """A word at every node: dependency trees and graphs."""
    return cortex.tanh(w.emb[node.word] + cortex.sum(w.U @ words_everywhere(k, w) for k in node.children))


def words_below_by(children: Callable[[Any], list[Any]], word: Callable[[Any], int]) -> Callable[[Any], Any]:
    def h(node: Any) -> Any:
        below = [h(child) for child in children(node)]
        return np.tanh(WEIGHTS["U"] @ sum(below) + below[0]) if below else np.tanh(WEIGHTS["emb"][word(node)])

    return h


def labelled_by(
    children: Callable[[Any], Iterable[Any]], label: Callable[[Any], int], word: Callable[[Any], int]
) -> Callable[[Any], Any]:
    def h(node: Any) -> Any:
        below = [WEIGHTS["U"] @ h(child) for child in children(node)]
        x = WEIGHTS["kind"][label(node)] + sum(below)
        return np.tanh(x if below else x + WEIGHTS["emb"][word(node)])

    return h


def words_everywhere_by(children: Callable[[Any], Iterable[Any]], word: Callable[[Any], int]) -> Callable[[Any], Any]:
    def h(node: Any) -> Any:
        return np.tanh(WEIGHTS["emb"][word(node)] + sum(WEIGHTS["U"] @ h(child) for child in children(node)))

    return h


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
