"""MV-RNN: a vector and a matrix at every node (Socher et al., 2012)."""

from __future__ import annotations

from typing import Any

import numpy as np

import cortex
from cortex import concat, tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import parse_trees


@cortex.model
def mv_rnn(node: Any, w: Any) -> Any:
    """v = tanh(W [M_r v_l ; M_l v_r] + b), M = W_M [M_l ; M_r]; a word has a vector and a matrix of its own."""
    if node.is_leaf:
        return cortex.state(v=w.emb[node.word], M=w.mat[node.word])
    left, right = mv_rnn(node.left, w), mv_rnn(node.right, w)
    v = tanh(w.W @ concat([right.M @ left.v, left.M @ right.v]) + w.b)
    return cortex.state(v=v, M=w.WM @ concat([left.M, right.M]))


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), mat (V, H, H), W (H, 2H), b (H), WM (H, 2H). Matrices stay near the identity, as in the paper."""
    draw = Draw(hidden, seed)
    one = np.eye(hidden, dtype=np.float32)
    mean = np.concatenate([one, one], axis=1) / 2
    return {
        "emb": draw.embedding(vocab, hidden),
        "mat": one + draw.normal(vocab, hidden, hidden, scale=0.3 * hidden**-0.5),
        "W": draw.uniform(hidden, 2 * hidden),
        "b": draw.uniform(hidden),
        "WM": mean + draw.normal(hidden, 2 * hidden, scale=0.2 * (2 * hidden) ** -0.5),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    from torch import cat, tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if node.left is None:
            return State(v=w.emb[node.word], M=w.mat[node.word])
        left, right = f(node.left), f(node.right)
        v = tanh(w.W @ cat([right.M @ left.v, left.M @ right.v]) + w.b)
        return State(v=v, M=w.WM @ cat([left.M, right.M]))

    return recurse(cell)


ENTRY = Entry(
    "mv_rnn",
    mv_rnn,
    weights,
    reference,
    parse_trees,
    (64, 128),
    ("v", "M"),
    vocab=1000,
)
