"""SimpleTreeGRU: a TreeGRU without the path around the candidate, h = (1 - z) * g."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import sigmoid, tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import parse_trees_with_children


@cortex.model
def simple_tree_gru(node: Any, w: Any) -> Any:
    """Only g and z reach the parent, so one value crosses a back edge moved into the cell."""
    if node.is_leaf:
        x = w.emb[node.word]
        z = sigmoid(w.Wz @ x + w.bz)
        return cortex.state(h=(1 - z) * tanh(w.Wh @ x + w.bh))
    s = cortex.sum(simple_tree_gru(k, w).h for k in node.children)
    z = sigmoid(w.Uz @ s + w.bz)
    r = sigmoid(w.Ur @ s + w.br)
    return cortex.state(h=(1 - z) * tanh(w.Uh @ (r * s) + w.bh))


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H); Wz, Wh, Uz, Ur, Uh (H, H); bz, br, bh (H). A leaf has no sum for r to gate, so there is no Wr."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        **{name: draw.uniform(hidden, hidden, gain=1.7) for name in ("Wz", "Wh")},
        **{name: draw.uniform(hidden, hidden, gain=2.5) for name in ("Uz", "Ur", "Uh")},
        **{name: draw.uniform(hidden) for name in ("bz", "br", "bh")},
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
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
        return State(h=(1 - z) * tanh(w.Uh @ (r * s) + w.bh))

    return recurse(cell)


ENTRY = Entry(
    "simple_tree_gru",
    simple_tree_gru,
    weights,
    reference,
    parse_trees_with_children,
    (256, 512),
)
