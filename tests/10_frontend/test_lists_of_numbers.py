"""Lists of numbers on nodes are Python's lists in model functions: items, slices, `+`, `*`, methods, any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node

import cortex

W = {"b": np.array([1, -2, 0.5], np.float32), "E": np.arange(27, dtype=np.float32).reshape(9, 3)}

TWO = [7, 8]


def tree(length: int) -> Node:
    def node(k: int, count: int, *children: Node) -> Node:
        long = [2.0**30 + i + k / 8 for i in range(count)]
        return Node(long=long, ints=[2**30 + k, 5, 7], few=(1, 2, 3), words=[1, k, 3], children=list(children))

    return node(1, length, node(2, 3), node(4, length, node(5, 70)))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "an item": lambda n, w: w.b * (n.long[0] - n.long[-2]),
    "a number and an item": lambda n, w: w.b * (n.long[1] - 2**30),
    "a sum": lambda n, w: w.b * (sum(n.long) - len(n.long) * 2**30),
    "a slice": lambda n, w: w.b * sum(x - 2**30 for x in n.long[60:]),
    "an empty slice": lambda n, w: w.b * len(n.long[60:]),
    "a maximum": lambda n, w: w.b * (max(n.long) - 2**30),
    "large integers": lambda n, w: w.b * (n.ints[0] - 2**30),
    "joined": lambda n, w: w.b * len(n.words + n.ints) + w.b * sum(n.words + n.words),
    "joined with a constant": lambda n, w: w.b * (n.words + TWO)[4] + (TWO + n.words)[0] * w.b,
    "joined tuples": lambda n, w: w.b * sum(n.few + tuple(TWO)),
    "repeated": lambda n, w: w.b * sum(n.words * 2) + len(3 * n.words) * w.b,
    "looked up": lambda n, w: cortex.sum(w.E[i] for i in n.words + n.words),
    "counted": lambda n, w: w.b * n.words.count(2) + w.b * n.words.index(3),
    "in pairs": lambda n, w: w.b * sum(a * b for a, b in zip(n.words, n.few, strict=True)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("length", [2, 68])
def test_lists(name: str, length: int) -> None:
    own = FUNCTIONS[name]

    @cortex.model
    def of_lists(node: Any, w: Any) -> Any:
        return own(node, w)

    fast = cortex.compile(of_lists, W, examples=[tree(length)], check=False)
    for other in (tree(length), tree(65), *tree(4).children):
        np.testing.assert_allclose(fast(other).out, of_lists(other, W), rtol=1e-6, atol=1e-6)


def test_a_list_that_is_changed_is_refused() -> None:
    @cortex.model
    def longer(node: Any, w: Any) -> Any:
        node.words.append(1)
        return w.b * len(node.words)

    with pytest.raises(cortex.ModelError, match=r"changes a list of the node's\. Copy it first"):
        cortex.compile(longer, W, examples=[tree(2)], check=False)


def test_a_long_sum_is_refused() -> None:
    @cortex.model
    def total(node: Any, w: Any) -> Any:
        return w.b * sum(node.long)

    with pytest.raises(cortex.ModelError, match="more than 100 operators"):
        cortex.compile(total, W, examples=[tree(200)], check=False)
