"""LSTM over a sequence; gates and their order are torch.nn.LSTM's (i, f, g, o), its two biases added up."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import sigmoid, split, tanh, zeros
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import sequences


@cortex.model
def lstm(node: Any, w: Any) -> Any:
    """A sequence is a linked list read from its last element; before the first, the state is zero."""
    if node.prev is None:
        h = c = zeros(w.Wh.shape[1])
    else:
        before = lstm(node.prev, w)
        h, c = before.h, before.c
    i, f, g, o = split(w.Wx @ w.emb[node.word] + w.Wh @ h + w.b, 4)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return cortex.state(h=sigmoid(o) * tanh(c), c=c)


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), Wx and Wh (4H, H), b (4H), rows i, f, g, o."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "Wx": draw.uniform(4 * hidden, hidden, gain=1.7),
        "Wh": draw.uniform(4 * hidden, hidden, gain=1.7),
        "b": draw.uniform(4 * hidden),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    from torch import sigmoid, tanh, zeros_like

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        if node.prev is None:
            h = c = zeros_like(w.emb[0])
        else:
            before = f(node.prev)
            h, c = before.h, before.c
        i, forget, g, o = (w.Wx @ w.emb[node.word] + w.Wh @ h + w.b).chunk(4)
        c = sigmoid(forget) * c + sigmoid(i) * tanh(g)
        return State(h=sigmoid(o) * tanh(c), c=c)

    return recurse(cell)


ENTRY = Entry("lstm", lstm, weights, reference, sequences, (256, 512), ("h", "c"))
