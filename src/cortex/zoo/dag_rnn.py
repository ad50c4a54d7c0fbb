"""DAG-RNN: a recurrent cell over the sum of the predecessors (Shuai et al., 2016)."""

from __future__ import annotations

from typing import Any

import cortex
from cortex import tanh
from cortex.zoo.entry import Entry, Weights
from cortex.zoo.random_weights import Draw
from cortex.zoo.recurse import Recursive, State, recurse, tensors
from cortex.zoo.structures import grids


@cortex.model
def dag_rnn(node: Any, w: Any) -> Any:
    """h = tanh(U sum h_p + W x + b), where `children` are the predecessors p; a source has none to sum over."""
    x = w.W @ w.emb[node.word] + w.b
    if node.is_leaf:
        return cortex.state(h=tanh(x))
    return cortex.state(h=tanh(w.U @ cortex.sum(dag_rnn(p, w).h for p in node.children) + x))


def weights(hidden: int, vocab: int, seed: int = 0) -> Weights:
    """emb (V, H), U and W (H, H), b (H)."""
    draw = Draw(hidden, seed)
    return {
        "emb": draw.embedding(vocab, hidden),
        "U": draw.uniform(hidden, hidden),
        "W": draw.uniform(hidden, hidden, gain=1.7),
        "b": draw.uniform(hidden),
    }


def reference(weights: Weights) -> Recursive:
    """The model in PyTorch."""
    from torch import tanh

    w = tensors(weights)

    def cell(node: Any, f: Recursive) -> Any:
        x = w.W @ w.emb[node.word] + w.b
        if not node.children:
            return State(h=tanh(x))
        return State(h=tanh(w.U @ sum(f(p).h for p in node.children) + x))

    return recurse(cell)


ENTRY = Entry("dag_rnn", dag_rnn, weights, reference, grids, (256, 512))
