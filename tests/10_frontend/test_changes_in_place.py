"""`x += y` in model functions: another tensor or number, as uncompiled; arrays and lists of nodes are not changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node, weights
from numpy.testing import assert_allclose

import cortex

W = weights(3, emb=(9, 3), b=(3,))


def tree() -> Node:
    def node(word: int, *children: Node) -> Node:
        x = np.arange(3, dtype=np.float32) / (word + 1)
        return Node(word=word, k=word % 3, s=word / 4, x=x, children=list(children))

    return node(1, node(2), node(3, node(4), node(5), node(6)), node(7))


@cortex.model
def weights_and_numbers(node: Any, w: Any) -> Any:
    v, n, s = w.b, node.k, node.s
    n += 1
    s *= 2
    for c in node.children:
        v += weights_and_numbers(c, w)
        n += c.k
        s -= c.s * node.s
    v *= n
    return v + s


@cortex.model
def rows_and_aliases(node: Any, w: Any) -> Any:
    v = w.emb[node.word]
    u = v
    v += node.x
    v *= u
    return v - u + cortex.sum(rows_and_aliases(c, w) for c in node.children)


@cortex.model
def begins_with_zeros(node: Any, w: Any) -> Any:
    z = cortex.zeros(3)
    z += node.x
    z += w.b
    for c in node.children:
        z += begins_with_zeros(c, w)
    return z


@cortex.model
def results_of_children(node: Any, w: Any) -> Any:
    if not node.children:
        return w.emb[node.word]
    first = results_of_children(node.children[0], w)
    changed = first
    changed /= 2
    return first - changed + results_of_children(node.children[0], w)


@pytest.mark.parametrize(
    "model", [weights_and_numbers, rows_and_aliases, begins_with_zeros, results_of_children], ids=lambda m: m.name
)
@pytest.mark.parametrize("early", [True, False])
def test_another_tensor(model: Any, early: bool) -> None:
    fast = cortex.compile(model, W, check=False, **({"examples": [tree().children[1]]} if early else {}))
    assert_allclose(np.asarray(fast(tree())), model(tree(), W), rtol=1e-5, atol=1e-5)


def computed_from_a_field(node: Any, w: Any) -> Any:
    v = -node.x
    u = v
    u += w.b
    return u + v


def a_field(node: Any, w: Any) -> Any:
    v = node.x
    v *= 2
    return v + w.b


def part_of_a_field(node: Any, w: Any) -> Any:
    v = node.x[:2]
    v -= 1
    return cortex.concat([v, node.x[2:]]) + w.b


def a_list(node: Any, w: Any) -> Any:
    kids = node.children
    kids += node.children[:1]
    return w.b * len(kids)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("body", [computed_from_a_field, a_field, part_of_a_field, a_list], ids=lambda f: f.__name__)
def test_what_nodes_hold_is_not_changed(
    body: Callable[..., Any], early: bool, golden: Callable[[str, str], None]
) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(cortex.model(body), W, **({"examples": [tree()]} if early else {}))(tree())
    golden(f"errors/in_place/{body.__name__}", str(caught.value).split("\n")[0])
