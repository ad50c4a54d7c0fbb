"""Child-sum TreeGRU, for constituency and for dependency trees."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import sigmoid, tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import dependency_trees, parse_trees_with_children


@cortex.model
def tree_gru(node: Any, w: Any) -> Any:
    """Words at the leaves only: there the sum is zero, so r gates nothing."""
    if node.is_leaf:
        x = w.emb[node.word]
        z = sigmoid(w.Wz @ x + w.bz)
        return cortex.state(h=(1 - z) * tanh(w.Wh @ x + w.bh))
    s = cortex.sum(tree_gru(k, w).h for k in node.children)
    z = sigmoid(w.Uz @ s + w.bz)
    r = sigmoid(w.Ur @ s + w.br)
    g = tanh(w.Uh @ (r * s) + w.bh)
    return cortex.state(h=z * s + (1 - z) * g)


@cortex.model
def tree_gru_words(node: Any, w: Any) -> Any:
    """A word at every node; a leaf is as in `tree_gru`."""
    x = w.emb[node.word]
    if node.is_leaf:
        z = sigmoid(w.Wz @ x + w.bz)
        return cortex.state(h=(1 - z) * tanh(w.Wh @ x + w.bh))
    s = cortex.sum(tree_gru_words(k, w).h for k in node.children)
    z = sigmoid(w.Wz @ x + w.Uz @ s + w.bz)
    r = sigmoid(w.Wr @ x + w.Ur @ s + w.br)
    g = tanh(w.Wh @ x + w.Uh @ (r * s) + w.bh)
    return cortex.state(h=z * s + (1 - z) * g)


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H); Wz, Wh, Uz, Ur, Uh (H, H); bz, br, bh (H). A leaf has no sum for r to gate, so there is no Wr."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        **{name: draw.uniform(hidden, hidden, gain=1.7) for name in ("Wz", "Wh")},
        **{name: draw.uniform(hidden, hidden) for name in ("Uz", "Ur", "Uh")},
        **{name: draw.uniform(hidden) for name in ("bz", "br", "bh")},
    }


def weights_words(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """As `weights`, and Wr (H, H)."""
    return weights(hidden, vocab, seed) | {"Wr": Draw(hidden, seed + 1).uniform(hidden, hidden, gain=1.7)}


def reference(weights: Weights) -> Recursive:
    """`tree_gru` in PyTorch."""
    from torch import sigmoid, tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if not node.children:
            x = w.emb[node.word]
            z = sigmoid(w.Wz @ x + w.bz)
            return State(h=(1 - z) * tanh(w.Wh @ x + w.bh))
        s = sum(f(k).h for k in node.children)
        z = sigmoid(w.Uz @ s + w.bz)
        r = sigmoid(w.Ur @ s + w.br)
        g = tanh(w.Uh @ (r * s) + w.bh)
        return State(h=z * s + (1 - z) * g)

    return recurse(cell)


def reference_words(weights: Weights) -> Recursive:
    """`tree_gru_words` in PyTorch."""
    from torch import sigmoid, tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        x = w.emb[node.word]
        if not node.children:
            z = sigmoid(w.Wz @ x + w.bz)
            return State(h=(1 - z) * tanh(w.Wh @ x + w.bh))
        s = sum(f(k).h for k in node.children)
        z = sigmoid(w.Wz @ x + w.Uz @ s + w.bz)
        r = sigmoid(w.Wr @ x + w.Ur @ s + w.br)
        g = tanh(w.Wh @ x + w.Uh @ (r * s) + w.bh)
        return State(h=z * s + (1 - z) * g)

    return recurse(cell)


ENTRY = Entry(
    "tree_gru",
    tree_gru,
    weights,
    reference,
    parse_trees_with_children,
    (256, 512),
)
WORDS_ENTRY = Entry(
    "tree_gru_words",
    tree_gru_words,
    weights_words,
    reference_words,
    dependency_trees,
    (256, 512),
)
