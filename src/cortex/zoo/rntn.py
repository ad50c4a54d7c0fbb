"""RNTN: a bilinear form of the two children for every hidden unit (Socher et al., 2013)."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import concat, einsum, tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import parse_trees


@cortex.model
def rntn(node: Any, w: Any) -> Any:
    """h = tanh(x^T V x + W x + b) with x = [h_l ; h_r]; V has a 2H x 2H slice per hidden unit."""
    if node.is_leaf:
        return cortex.state(h=w.emb[node.word])
    x = concat([rntn(node.left, w).h, rntn(node.right, w).h])
    return cortex.state(h=tanh(einsum("hij,i,j->h", w.V, x, x) + w.W @ x + w.b))


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), V (H, 2H, 2H), W (H, 2H), b (H)."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "V": draw.uniform(hidden, 2 * hidden, 2 * hidden, gain=hidden**-0.5),
        "W": draw.uniform(hidden, 2 * hidden),
        "b": draw.uniform(hidden),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    from torch import cat, einsum, tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if node.left is None:
            return State(h=w.emb[node.word])
        x = cat([f(node.left).h, f(node.right).h])
        return State(h=tanh(einsum("hij,i,j->h", w.V, x, x) + w.W @ x + w.b))

    return recurse(cell)


ENTRY = Entry("rntn", rntn, weights, reference, parse_trees, (32, 64))
