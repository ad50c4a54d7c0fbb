"""TreeFC: one fully connected layer over the two children (Looks et al., 2017)."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import concat, relu
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import perfect_trees


@cortex.model
def tree_fc(node: Any, w: Any) -> Any:
    """h = emb[word] at a leaf, relu(W [h_l ; h_r] + b) above."""
    if node.is_leaf:
        return cortex.state(h=w.emb[node.word])
    left, right = tree_fc(node.left, w), tree_fc(node.right, w)
    return cortex.state(h=relu(w.W @ concat([left.h, right.h]) + w.b))


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), W (H, 2H), b (H)."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "W": draw.uniform(hidden, 2 * hidden, gain=3**0.5),
        "b": draw.uniform(hidden),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    import torch

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if node.left is None:
            return State(h=w.emb[node.word])
        left, right = f(node.left), f(node.right)
        return State(h=torch.relu(w.W @ torch.cat([left.h, right.h]) + w.b))

    return recurse(cell)


ENTRY = Entry("tree_fc", tree_fc, weights, reference, perfect_trees, (256, 512))
