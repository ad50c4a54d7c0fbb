"""Child-sum TreeLSTM (Tai, Socher and Manning, 2015), for constituency and for dependency trees."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import sigmoid, split, tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import dependency_trees, parse_trees_with_children


@cortex.model
def tree_lstm(node: Any, w: Any) -> Any:
    """Words at the leaves only: a leaf has no children to sum, an inner node no input."""
    if node.is_leaf:
        i, o, u = split(w.W @ w.emb[node.word] + w.b, 3)
        c = sigmoid(i) * tanh(u)
    else:
        kids = node.children
        i, o, u = split(w.U @ cortex.sum(tree_lstm(k, w).h for k in kids) + w.b, 3)
        c = sigmoid(i) * tanh(u) + cortex.sum(
            sigmoid(w.Uf @ tree_lstm(k, w).h + w.bf) * tree_lstm(k, w).c for k in kids
        )
    return cortex.state(h=sigmoid(o) * tanh(c), c=c)


@cortex.model
def tree_lstm_words(node: Any, w: Any) -> Any:
    """A word at every node; a sum over no children is zero."""
    x, kids = w.emb[node.word], node.children
    i, o, u = split(w.W @ x + w.U @ cortex.sum(tree_lstm_words(k, w).h for k in kids) + w.b, 3)
    xf = w.Wf @ x + w.bf
    c = sigmoid(i) * tanh(u) + cortex.sum(
        sigmoid(xf + w.Uf @ tree_lstm_words(k, w).h) * tree_lstm_words(k, w).c for k in kids
    )
    return cortex.state(h=sigmoid(o) * tanh(c), c=c)


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), W and U (3H, H) and b (3H) with rows i, o, u, Uf (H, H), bf (H)."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "W": draw.uniform(3 * hidden, hidden, gain=1.7),
        "U": draw.uniform(3 * hidden, hidden, gain=1.7),
        "b": draw.uniform(3 * hidden),
        "Uf": draw.uniform(hidden, hidden, gain=1.7),
        "bf": draw.uniform(hidden),
    }


def weights_words(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """As `weights`, and Wf (H, H)."""
    return weights(hidden, vocab, seed) | {"Wf": Draw(hidden, seed + 1).uniform(hidden, hidden, gain=1.7)}


def reference(weights: Weights) -> Recursive:
    """`tree_lstm` in PyTorch."""
    from torch import sigmoid, tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if not node.children:
            i, o, u = (w.W @ w.emb[node.word] + w.b).chunk(3)
            c = sigmoid(i) * tanh(u)
        else:
            kids = [f(k) for k in node.children]
            i, o, u = (w.U @ sum(k.h for k in kids) + w.b).chunk(3)
            c = sigmoid(i) * tanh(u) + sum(sigmoid(w.Uf @ k.h + w.bf) * k.c for k in kids)
        return State(h=sigmoid(o) * tanh(c), c=c)

    return recurse(cell)


def reference_words(weights: Weights) -> Recursive:
    """`tree_lstm_words` in PyTorch."""
    from torch import sigmoid, tanh, zeros_like

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        x, kids = w.emb[node.word], [f(k) for k in node.children]
        i, o, u = (w.W @ x + w.U @ sum((k.h for k in kids), zeros_like(x)) + w.b).chunk(3)
        xf = w.Wf @ x + w.bf
        c = sigmoid(i) * tanh(u) + sum(sigmoid(xf + w.Uf @ k.h) * k.c for k in kids)
        return State(h=sigmoid(o) * tanh(c), c=c)

    return recurse(cell)


ENTRY = Entry(
    "tree_lstm",
    tree_lstm,
    weights,
    reference,
    parse_trees_with_children,
    (256, 512),
    ("h", "c"),
)
WORDS_ENTRY = Entry(
    "tree_lstm_words",
    tree_lstm_words,
    weights_words,
    reference_words,
    dependency_trees,
    (256, 512),
    ("h", "c"),
)
