"""Models that ask everything a guard can ask, and structures for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sums_and_products import SIZE, WORDS

import cortex
from cortex.runtime.forest import Forest


@cortex.model
def curious(node: Any, w: Any) -> Any:
    """Children that may be missing, an input that may be, numbers, flags, lengths, and a field of a child."""
    x = w.b if node.x is None else node.x
    if node.left is None:
        if node.label is not None:
            x = x + w.b
        return cortex.tanh(x + (0.5 if node.flag else 0.25))
    h = curious(node.left, w) + 0.5 * w.emb[node.left.word]
    if node.right is not None:
        h = h + curious(node.right, w)
    match len(node.others):
        case 0:
            pass
        case 2:
            h = h + curious(node.others[0], w) * curious(node.others[1], w)
        case _:
            h = h - cortex.sum(curious(k, w) for k in node.others)
    if node.weight == 3:
        h = h * 0.5
    return cortex.tanh(h + x)


@cortex.model
def counting(node: Any, w: Any) -> Any:
    """An attribute that says how many children there are; where it lies, that is another kind."""
    if node.arity == 0:
        return w.emb[node.word]
    s = cortex.zeros(SIZE)
    for i in range(node.arity):
        s = s + counting(node.children[i], w)
    return cortex.tanh(s)


@cortex.model
def comparing(node: Any, w: Any) -> Any:
    """Numbers of a node and of its child that are compared with bounds: integers, floats, and an index."""
    x = w.emb[node.word]
    if node.left is None:
        return cortex.tanh(x) if 0.75 <= node.cost < 2 else x
    h = comparing(node.left, w)
    if node.left.word > 2.5:
        h = h + x
    return cortex.tanh(h * w.b) if node.left.cost > 1e300 else cortex.tanh(h)


def comparing_forest(seed: int, count: int) -> Forest:
    """Random chains whose nodes have all sorts of costs."""
    rng = np.random.default_rng(seed)
    left = np.array([-1 if i % 4 == 0 else i - 1 for i in range(count)])
    costs = [0.5, 0.75, 1.0, 2.0, np.nan, -np.inf, np.inf]
    fields = {"word": rng.integers(0, WORDS, count), "cost": rng.choice(costs, count).astype(np.float32)}
    return Forest.from_slots({"left": left}, fields)


HERE = SimpleNamespace(special=7)
"""Where `looping` reads a number that its code does not mention."""


@cortex.model
def looping(node: Any, w: Any) -> Any:
    """A loop that is one kind of any number of children, but for one number."""
    if node.is_leaf:
        return cortex.tanh(w.emb[node.word])
    s = cortex.zeros(SIZE)
    for child in node.children:
        s = s + looping(child, w)
    return s * w.b if len(node.children) == HERE.special else cortex.tanh(s)


def star_forest(arity: int) -> Forest:
    """A root with so many leaves."""
    pointer = np.array([0, *[arity] * (arity + 1)])
    return Forest.from_children(pointer, np.arange(1, arity + 1), {"word": np.arange(arity + 1) % WORDS})


def curious_forest(seed: int, count: int) -> Forest:
    """Random nodes with children of all sorts, which stand before and after their parents."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(count)
    left, right = np.full(count, -1), np.full(count, -1)
    others: list[list[int]] = [[] for _ in range(count)]
    for i in range(count // 3, count):
        v, below = place[i], place[:i]
        left[v] = rng.choice(below)
        right[v] = rng.choice(below) if rng.random() < 0.5 else -1
        others[v] = rng.choice(below, rng.integers(0, 4)).tolist()
    fields = {
        "word": rng.integers(0, WORDS, count),
        "x": [rng.normal(0, 1, SIZE).astype(np.float32) if rng.random() < 0.6 else None for _ in range(count)],
        "label": [("noun" if rng.random() < 0.5 else None) for _ in range(count)],
        "flag": [bool(rng.random() < 0.5) for _ in range(count)],
        "weight": rng.integers(2, 5, count),
    }
    pointer = np.cumsum([0, *map(len, others)]).astype(np.int32)
    index = np.array([c for each in others for c in each], np.int32)
    return Forest._checked(
        count,
        {"left": left.astype(np.int32), "right": right.astype(np.int32)},
        {"others": (pointer, index)},
        fields,
        None,
    )
