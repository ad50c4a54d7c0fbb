"""N-ary TreeLSTM with two child slots (Tai, Socher and Manning, 2015)."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import concat, sigmoid, split, tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import parse_trees


@cortex.model
def nary_tree_lstm(node: Any, w: Any) -> Any:
    """U = [U_l | U_r] has a matrix per slot; Uf a block per pair (forget gate of slot k, child in slot l)."""
    if node.is_leaf:
        i, o, u = split(w.W @ w.emb[node.word] + w.b, 3)
        c = sigmoid(i) * tanh(u)
    else:
        left, right = nary_tree_lstm(node.left, w), nary_tree_lstm(node.right, w)
        hs = concat([left.h, right.h])
        i, o, u = split(w.U @ hs + w.b, 3)
        f_left, f_right = split(w.Uf @ hs, 2)
        c = sigmoid(i) * tanh(u) + sigmoid(f_left + w.bf) * left.c + sigmoid(f_right + w.bf) * right.c
    return cortex.state(h=sigmoid(o) * tanh(c), c=c)


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), W (3H, H), U (3H, 2H) and b (3H) with rows i, o, u, Uf (2H, 2H), bf (H)."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "W": draw.uniform(3 * hidden, hidden, gain=1.7),
        "U": draw.uniform(3 * hidden, 2 * hidden, gain=1.7),
        "b": draw.uniform(3 * hidden),
        "Uf": draw.uniform(2 * hidden, 2 * hidden, gain=1.7),
        "bf": draw.uniform(hidden),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    from torch import cat, sigmoid, tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if node.left is None:
            i, o, u = (w.W @ w.emb[node.word] + w.b).chunk(3)
            c = sigmoid(i) * tanh(u)
        else:
            left, right = f(node.left), f(node.right)
            hs = cat([left.h, right.h])
            i, o, u = (w.U @ hs + w.b).chunk(3)
            f_left, f_right = (w.Uf @ hs).chunk(2)
            c = sigmoid(i) * tanh(u) + sigmoid(f_left + w.bf) * left.c + sigmoid(f_right + w.bf) * right.c
        return State(h=sigmoid(o) * tanh(c), c=c)

    return recurse(cell)


ENTRY = Entry(
    "nary_tree_lstm",
    nary_tree_lstm,
    weights,
    reference,
    parse_trees,
    (256, 512),
    ("h", "c"),
)
