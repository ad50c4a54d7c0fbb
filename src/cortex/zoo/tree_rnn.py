"""TreeRNN: the Cortex paper's running example, a sum and a tanh."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import parse_trees


@cortex.model
def tree_rnn(node: Any, w: Any) -> Any:
    """h = emb[word] at a leaf, tanh(h_l + h_r + b) above."""
    if node.is_leaf:
        return cortex.state(h=w.emb[node.word])
    return cortex.state(h=tanh(tree_rnn(node.left, w).h + tree_rnn(node.right, w).h + w.b))


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), b (H)."""
    draw = Draw(hidden, seed)
    return {"emb": draw.embedding(vocab, hidden), "b": draw.uniform(hidden)}


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    import torch

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if node.left is None:
            return State(h=w.emb[node.word])
        return State(h=torch.tanh(f(node.left).h + f(node.right).h + w.b))

    return recurse(cell)


ENTRY = Entry("tree_rnn", tree_rnn, weights, reference, parse_trees, (256, 512))
