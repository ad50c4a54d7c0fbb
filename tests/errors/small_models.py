"""One small model for each way to use structures, what each computes written out in NumPy, and a good structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

import cortex

Array = Any

WORDS, SIZE = 10, 4
_rng = np.random.default_rng(0)
EMB = _rng.normal(size=(WORDS, SIZE)).astype(np.float32)
U = (_rng.normal(size=(SIZE, SIZE)) / 2).astype(np.float32)
WEIGHTS = {"emb": EMB, "U": U}


def Node(*children: Any, **fields: Any) -> Any:
    """A node with a list of children."""
    return SimpleNamespace(children=list(children), **fields)


def Pair(left: Any = None, right: Any = None, **fields: Any) -> Any:
    """A node with two slots."""
    return SimpleNamespace(left=left, right=right, **fields)


@cortex.model
def tree(node: Any, w: Any) -> Any:
    if node.is_leaf:
        return w.emb[node.word]
    return cortex.tanh(w.U @ cortex.sum(tree(k, w) for k in node.children))


def tree_value(node: Any) -> Array:
    if not node.children:
        return EMB[int(node.word)]
    return np.tanh(U @ sum(tree_value(k) for k in node.children if k is not None))


@cortex.model
def pair(node: Any, w: Any) -> Any:
    if node.left is None:
        return w.emb[node.word]
    return cortex.tanh(w.U @ (pair(node.left, w) - pair(node.right, w)))


def pair_value(node: Any) -> Array:
    return EMB[int(node.word)] if node.left is None else np.tanh(U @ (pair_value(node.left) - pair_value(node.right)))


@cortex.model
def chain(node: Any, w: Any) -> Any:
    x = w.emb[node.word]
    return x if node.prev is None else 0.5 * (x + chain(node.prev, w))


def chain_value(node: Any) -> Array:
    """Without recursion: chains may be long. What is further away than 200 steps counts less than 2**-200."""
    words = []
    while node is not None and len(words) < 200:
        words.append(int(node.word))
        node = node.prev
    value = EMB[words.pop()].astype(np.float64)
    while words:
        value = 0.5 * (EMB[words.pop()] + value)
    return value


@cortex.model
def graph(node: Any, w: Any) -> Any:
    return cortex.tanh(w.emb[node.word] + w.U @ cortex.mean(graph(k, w) for k in node.args))


def graph_value(node: Any) -> Array:
    below = [graph_value(k) for k in node.args]
    return np.tanh(EMB[int(node.word)] + U @ (np.mean(below, axis=0) if below else np.zeros(SIZE)))


@cortex.model
def typed(node: Any, w: Any) -> Any:
    if node.op == "word":
        return w.emb[node.word]
    if node.op == "not":
        return -typed(node.arg, w)
    return typed(node.left, w) * typed(node.right, w)


def typed_value(node: Any) -> Array:
    if node.op == "word":
        return EMB[int(node.word)]
    return -typed_value(node.arg) if node.op == "not" else typed_value(node.left) * typed_value(node.right)


@cortex.model
def sized(node: Any, w: Any) -> Any:
    """Control flow on the value of a number: a kind for each."""
    x = w.emb[0] * int(node.size)
    return x if node.next is None else x + sized(node.next, w)


def sized_value(node: Any) -> Array:
    return EMB[0] * int(node.size) + (0 if node.next is None else sized_value(node.next))


@cortex.model
def vector(node: Any, w: Any) -> Any:
    return node.scale * (w.U @ node.x) + cortex.sum(vector(k, w) for k in node.children)


def vector_value(node: Any) -> Array:
    with np.errstate(all="ignore"):
        x = np.asarray(node.x, np.float32)
        here = np.float32(node.scale) * (U @ x)
        return here + sum((vector_value(k) for k in node.children), np.zeros(SIZE))


@dataclass(frozen=True, eq=False)
class Small:
    """A model, its meaning, and a structure that it accepts."""

    model: Any
    value: Callable[[Any], Array]
    good: Callable[[], Any]
    fields: dict[str, Any] | None = None

    @cache  # noqa: B019 - there are seven of them
    def compiled(self) -> cortex.compiler.Executable:
        """The executable that all cases share, so that each case shows that the ones before left it usable."""
        return cortex.compile(self.model, WEIGHTS, fields=self.fields)


SMALL = {
    "tree": Small(tree, tree_value, lambda: Node(Node(word=1), Node(Node(word=2), Node(word=3)))),
    "pair": Small(pair, pair_value, lambda: Pair(Pair(word=1), Pair(Pair(word=2), Pair(word=3)))),
    "chain": Small(chain, chain_value, lambda: SimpleNamespace(prev=SimpleNamespace(prev=None, word=4), word=5)),
    "graph": Small(graph, graph_value, lambda: SimpleNamespace(args=[SimpleNamespace(args=(), word=6)], word=7)),
    "typed": Small(
        typed, typed_value, lambda: SimpleNamespace(op="not", arg=SimpleNamespace(op="word", word=8))
    ),
    "sized": Small(sized, sized_value, lambda: SimpleNamespace(size=2, next=SimpleNamespace(size=3, next=None))),
    "vector": Small(
        vector,
        vector_value,
        lambda: Node(Node(x=[1.0, 2.0, 3.0, 4.0], scale=2.0), x=np.ones(SIZE), scale=1),
        fields={"x": cortex.field(SIZE), "scale": cortex.field()},
    ),
}  # fmt: skip
