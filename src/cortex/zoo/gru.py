"""GRU over a sequence; gates, their order (r, z, n) and both biases are torch.nn.GRU's."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import sigmoid, split, tanh, zeros
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import sequences


@cortex.model
def gru(node: Any, w: Any) -> Any:
    """A sequence is a linked list read from its last element; before the first, the state is zero."""
    h = zeros(w.Wh.shape[1]) if node.prev is None else gru(node.prev, w).h
    xr, xz, xn = split(w.Wx @ w.emb[node.word] + w.bx, 3)
    hr, hz, hn = split(w.Wh @ h + w.bh, 3)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    return cortex.state(h=(1 - z) * tanh(xn + r * hn) + z * h)


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), Wx and Wh (3H, H), bx and bh (3H), rows r, z, n."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "Wx": draw.uniform(3 * hidden, hidden, gain=1.7),
        "Wh": draw.uniform(3 * hidden, hidden, gain=1.7),
        "bx": draw.uniform(3 * hidden),
        "bh": draw.uniform(3 * hidden),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    from torch import sigmoid, tanh, zeros_like

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        h = zeros_like(w.emb[0]) if node.prev is None else f(node.prev).h
        xr, xz, xn = (w.Wx @ w.emb[node.word] + w.bx).chunk(3)
        hr, hz, hn = (w.Wh @ h + w.bh).chunk(3)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        return State(h=(1 - z) * tanh(xn + r * hn) + z * h)

    return recurse(cell)


ENTRY = Entry("gru", gru, weights, reference, sequences, (256, 512))
