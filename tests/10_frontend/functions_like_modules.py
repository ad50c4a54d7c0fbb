"""Model functions that do what one trace per node cannot see: three programs for each thing that modules may do."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cortex
from cortex import sigmoid, tanh

WORDS = 12
RNG = np.random.default_rng(20)
SHAPES = {"emb": (WORDS, 6), "U": (6, 6), "V": (6, 6), "b": (6,), "left.U": (6, 6), "right.U": (6, 6)}
WEIGHTS = {name: RNG.normal(0, 0.4, shape).astype(np.float32) for name, shape in SHAPES.items()}
VOCABULARY = {f"w{i}": i for i in range(WORDS)}
SCALE = {f"w{i}": 0.5 * i for i in range(WORDS)}


class Node:
    """A node of any number of children that knows its parent."""

    def __init__(self, word: int, *children: Any) -> None:
        self.word = word
        self.text = f"w{word}"
        self.children = list(children)
        self.parent: Any = None
        for child in children:
            child.parent = self

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children)

    def first_and_last(self) -> list[Any]:
        return self.children[:1] + self.children[-1:]


class Leaf(Node):
    """A node without children."""


class Special(Leaf):
    """Another one."""


@dataclass
class Binary:
    """A node whose children may be missing."""

    word: int
    left: Any = None
    right: Any = None


def tree(depth: int, rng: np.random.Generator) -> Node:
    word = int(rng.integers(WORDS))
    if depth == 0:
        return (Special if rng.random() < 0.4 else Leaf)(word)
    return Node(
        word, *(tree(depth - 1 if i else int(rng.integers(depth)), rng) for i in range(int(rng.integers(1, 4))))
    )


def binary(depth: int, rng: np.random.Generator) -> Any:
    if depth == 0 or rng.random() < 0.2:
        return None
    return Binary(int(rng.integers(WORDS)), binary(depth - 1, rng), binary(depth - 1, rng))


def rooted(depth: int, rng: np.random.Generator) -> Binary:
    return Binary(int(rng.integers(WORDS)), binary(depth, rng), binary(depth, rng))


def in_dicts(depth: int, rng: np.random.Generator) -> dict[str, Any]:
    below = [in_dicts(depth - 1, rng) for _ in range(int(rng.integers(1, 4)))] if depth else []
    return {"word": int(rng.integers(WORDS)), "kids": below, **({"mark": 1.5} if rng.random() < 0.3 else {})}


def in_tuples(depth: int, rng: np.random.Generator) -> Any:
    word = int(rng.integers(WORDS))
    return (word, in_tuples(depth - 1, rng), in_tuples(depth - 1, rng)) if depth else (word,)


def below(node: Any) -> Any:
    """A leaf of the tree, from which the way leads up."""
    return below(node.children[-1]) if node.children else node


def upwards(depth: int, rng: np.random.Generator) -> Node:
    found: Node = below(tree(depth, rng))
    return found


PROGRAMS: dict[str, tuple[Any, Callable[[int, np.random.Generator], Any]]] = {}


def program(make: Callable[[int, np.random.Generator], Any] = tree) -> Callable[[Any], Any]:
    """A model function, and what makes structures for it."""

    def add(function: Any) -> Any:
        model = cortex.model(function)
        PROGRAMS[model.name] = (model, make)
        return model

    return add


# Classes of nodes.


@program()
def by_class(node: Any, w: Any) -> Any:
    if isinstance(node, Leaf):
        return w.emb[node.word]
    return tanh(w.U @ cortex.sum(by_class(k, w) for k in node.children) + w.b)


@program()
def by_class_of_children(node: Any, w: Any) -> Any:
    h = w.emb[node.word]
    for k in node.children:
        h = h + (w.V if isinstance(k, Special) else w.U) @ by_class_of_children(k, w)
    return tanh(h)


@program()
def by_name_of_class(node: Any, w: Any) -> Any:
    if type(node).__name__ == "Special":
        return w.b * w.emb[node.word]
    return tanh(w.emb[node.word] + sum(by_name_of_class(k, w) for k in node.children))


# Values passed down.


@program()
def passed(node: Any, w: Any, above: Any = None) -> Any:
    h = w.emb[node.word] if above is None else tanh(w.U @ above + w.emb[node.word])
    return h + sum(passed(k, w, h) for k in node.children)


@program()
def passed_and_returned(node: Any, w: Any, above: Any = 0.0) -> Any:
    down = tanh(w.V @ w.emb[node.word] + above)
    if not node.children:
        return cortex.state(h=down, c=w.emb[node.word])
    below = [passed_and_returned(k, w, down) for k in node.children]
    return cortex.state(h=down + cortex.max(s.h for s in below), c=tanh(sum(s.c for s in below)))


@program()
def passed_state(node: Any, w: Any, state: Any = None) -> Any:
    h, c = (w.b, w.b) if state is None else state
    c = sigmoid(w.U @ h) * c + w.emb[node.word]
    h = tanh(c)
    return h + sum(passed_state(k, w, (h, c)) for k in node.children)


# What is stored on nodes.


@program()
def stored(node: Any, w: Any) -> Any:
    for k in node.children:
        stored(k, w)
    node.h = tanh(w.emb[node.word] + sum(w.U @ k.h for k in node.children))
    return node.h


def fill_in(node: Any, w: Any) -> None:
    for k in node.children:
        fill_in(k, w)
    node.filled = tanh(w.V @ w.emb[node.word] + sum(k.filled for k in node.children))


@program()
def filled_in(node: Any, w: Any) -> Any:
    fill_in(node, w)
    return node.filled * 2


@program()
def stored_pair(node: Any, w: Any) -> Any:
    below = [stored_pair(k, w) for k in node.children]
    node.pair = (w.emb[node.word], tanh(w.emb[node.word] + sum(below)))
    return node.pair[1] + sum(k.pair[0] for k in node.children)


# Vocabularies.


@program()
def looked_up(node: Any, w: Any) -> Any:
    return tanh(w.emb[VOCABULARY[node.text]] + sum(looked_up(k, w) for k in node.children))


@program()
def looked_up_or_not(node: Any, w: Any) -> Any:
    x = w.emb[VOCABULARY.get(node.text, 0)] * SCALE.get(node.text, 1.0)
    return tanh(x + sum(w.U @ looked_up_or_not(k, w) for k in node.children))


def _closed() -> Any:
    ids = dict(VOCABULARY)

    @program()
    def looked_up_around(node: Any, w: Any) -> Any:
        x = w.emb[ids[node.text]] if node.text in ids else w.b
        return tanh(x + sum(looked_up_around(k, w) for k in node.children))

    return looked_up_around


_closed()

# Several routines.


@cortex.model
def up(node: Any, w: Any) -> Any:
    node.up = tanh(w.emb[node.word] + sum(up(k, w) for k in node.children))
    return node.up


@cortex.model
def down(node: Any, w: Any, above: Any) -> Any:
    here = tanh(w.V @ node.up + above)
    return here + sum(down(k, w, here) for k in node.children)


@program()
def up_and_down(node: Any, w: Any) -> Any:
    up(node, w)
    return down(node, w, w.b)


@cortex.model
def even(node: Any, w: Any) -> Any:
    return tanh(w.U @ w.emb[node.word] + sum(odd(k, w) for k in node.children))


@program()
def odd(node: Any, w: Any) -> Any:
    return tanh(w.V @ w.emb[node.word] + sum(even(k, w) for k in node.children))


@program()
def other_weights(node: Any, w: Any) -> Any:
    def side(k: Any, group: Any) -> Any:
        return tanh(group.U @ w.emb[k.word] + sum(side(x, group) for x in k.children))

    return side(node, w.left) + side(node, w.right)


# Above the node.


@program(upwards)
def path_up(node: Any, w: Any) -> Any:
    h = w.emb[node.word]
    return h if node.parent is None else tanh(w.U @ path_up(node.parent, w) + h)


@program()
def of_parent(node: Any, w: Any) -> Any:
    h = w.emb[node.word]
    if node.parent is not None:
        h = h + w.U @ w.emb[node.parent.word]
    return tanh(h + sum(of_parent(k, w) for k in node.children))


@program()
def of_grandparent(node: Any, w: Any) -> Any:
    above = node.parent.parent if node.parent is not None else None
    h = w.emb[node.word] * (1 if above is None else len(above.children))
    return tanh(h + sum(of_grandparent(k, w) for k in node.children))


# Identity and equality.


@program()
def first_child(node: Any, w: Any) -> Any:
    x = w.emb[node.word]
    if node.parent is not None and node.parent.children[0] is node:
        x = x + w.b
    return tanh(x + sum(first_child(k, w) for k in node.children))


@program()
def siblings(node: Any, w: Any) -> Any:
    x = w.emb[node.word]
    for other in [] if node.parent is None else [c for c in node.parent.children if c != node]:
        x = x + w.V @ w.emb[other.word]
    return tanh(x + sum(siblings(k, w) for k in node.children))


@program()
def among(node: Any, w: Any) -> Any:
    ends = node.first_and_last()
    return tanh(w.emb[node.word] + sum((2 if k in ends else 1) * among(k, w) for k in node.children))


# Texts, methods, built-in functions.


@program()
def printed(node: Any, w: Any) -> Any:
    print("at", node, f"{node!r}", file=io.StringIO())
    return tanh(w.emb[node.word] + sum(printed(k, w) for k in node.children))


@program(rooted)
def text_of_node(node: Any, w: Any) -> Any:
    x = w.emb[node.word] * (2 if "left=None" in repr(node) else 1)
    kids = [k for k in (node.left, node.right) if k is not None]
    return tanh(x + sum(text_of_node(k, w) for k in kids))


@program()
def methods(node: Any, w: Any) -> Any:
    return tanh(w.emb[node.word] * node.size() + sum(methods(k, w) for k in node.children))


@program()
def largest(node: Any, w: Any) -> Any:
    return max([w.emb[node.word].sum(), *(largest(k, w) for k in node.children)])


@program()
def smallest(node: Any, w: Any) -> Any:
    below = [smallest(k, w) for k in node.children]
    return w.emb[node.word].mean() + (min(below) if below else 0.5)


@program()
def averaged(node: Any, w: Any) -> Any:
    below = [averaged(k, w) for k in node.children if isinstance(k, Node)]
    return tanh(w.emb[node.word] + (sum(below) / len(below) if below else w.b))


# Nodes that are dictionaries and tuples, and nodes that are missing.


@program(in_dicts)
def dictionaries(node: Any, w: Any) -> Any:
    return tanh(w.emb[node["word"]] + sum(dictionaries(k, w) for k in node["kids"]))


@program(in_dicts)
def dictionaries_asked(node: Any, w: Any) -> Any:
    x = w.emb[node["word"]] * node.get("mark", 1.0)
    if "mark" in node:
        x = w.U @ x
    return tanh(x + sum(dictionaries_asked(k, w) for k in node["kids"]))


@program(in_tuples)
def tuples(node: Any, w: Any) -> Any:
    word, *kids = node
    return tanh(w.emb[word] + sum(w.U @ tuples(k, w) for k in kids))


@program(rooted)
def missing(node: Any, w: Any) -> Any:
    if node is None:
        return w.b
    return tanh(w.emb[node.word] + w.U @ missing(node.left, w) + w.V @ missing(node.right, w))


@program(rooted)
def missing_states(node: Any, w: Any) -> Any:
    if node is None:
        return cortex.zeros(6), w.b
    (h, c), (g, d) = missing_states(node.left, w), missing_states(node.right, w)
    c = sigmoid(w.U @ h) * c + sigmoid(w.V @ g) * d + w.emb[node.word]
    return tanh(c), c


@program(rooted)
def none_returned(node: Any, w: Any) -> Any:
    if node is None:
        return None
    h = w.emb[node.word]
    for k in (node.left, node.right):
        found = none_returned(k, w)
        if found is not None:
            h = h + w.U @ found
    return tanh(h)
