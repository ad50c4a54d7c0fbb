"""`x += y` in model functions is Python's and NumPy's: arrays change for all that hold them, numbers do not.

What the function does not own (weights, fields, lists of nodes) is refused, and so is what only views would see.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node, weights
from numpy.testing import assert_allclose

import cortex

W = weights(3, emb=(9, 3), b=(3,), U=(3, 3))
HELD = np.ones(3, np.float32)
SETTINGS = SimpleNamespace(start=np.zeros(3, np.float32))


def tree() -> Node:
    def node(word: int, *children: Node) -> Node:
        x = np.arange(3, dtype=np.float32) / (word + 1)
        return Node(word=word, k=word % 3, s=word / 4, x=x, d=x.astype(float), children=list(children))

    return node(1, node(2), node(3, node(4), node(5), node(6)), node(7))


@cortex.model
def numbers(node: Any, w: Any) -> Any:
    v, n, s = w.b * 1, node.k, node.s
    m, t = n, s
    n += 1
    s *= 2
    for c in node.children:
        v += numbers(c, w)
        n += c.k
        s -= c.s * node.s
    v *= n + m
    return v + s * t


@cortex.model
def computed_from_a_field(node: Any, w: Any) -> Any:
    v = -node.x
    a = v
    a += w.b
    return v + a + cortex.sum(computed_from_a_field(c, w) for c in node.children)


@cortex.model
def in_double_precision(node: Any, w: Any) -> Any:
    v = node.d * 2
    v += w.b
    v -= node.d
    return v + cortex.sum(in_double_precision(c, w) for c in node.children)


@cortex.model
def aliases(node: Any, w: Any) -> Any:
    v = w.emb[node.word] * 2
    u, kept = v, [v]
    v += node.x
    v *= u
    return v - u / 2 + kept[0] + cortex.sum(aliases(c, w) for c in node.children)


@cortex.model
def begins_with_zeros(node: Any, w: Any) -> Any:
    z, y = cortex.zeros(3), np.zeros(3, np.float32)
    z += node.x
    z += w.b
    for c in node.children:
        below = begins_with_zeros(c, w)
        z += below
        y += below
    return z + y


@cortex.model
def results_of_children(node: Any, w: Any) -> Any:
    if not node.children:
        return w.emb[node.word]
    first = results_of_children(node.children[0], w)
    changed = first
    changed /= 2
    return first + changed + results_of_children(node.children[0], w)


@cortex.model
def scalars(node: Any, w: Any) -> Any:
    s = w.b @ node.x
    t = s
    s += 1
    if not node.children:
        return s * t
    return s * t + cortex.sum(scalars(c, w) for c in node.children)


@cortex.model
def states(node: Any, w: Any) -> Any:
    h = cortex.tanh(w.emb[node.word])
    found = cortex.state(h=h, c=h * 2)
    for c in node.children:
        h += states(c, w).c
    return found


@cortex.model
def changed_view(node: Any, w: Any) -> Any:
    v = (w.U * 2)[0]
    v += node.x
    return v + cortex.sum(changed_view(c, w) for c in node.children)


@cortex.model
def by_calls(node: Any, w: Any) -> Any:
    h = cortex.tanh(w.emb[node.word])
    node.h = h
    for c in node.children:
        below = by_calls(c, w)
        below += c.h
        h += below
    return node.h if isinstance(node, Node) else h


@cortex.model
def passed_down(node: Any, w: Any, above: Any = None) -> Any:
    h = w.emb[node.word] * 1 if above is None else above + w.emb[node.word]
    below = [passed_down(c, w, h) for c in node.children]
    for g in below:
        h += g
    return h


MODELS = [
    numbers, computed_from_a_field, in_double_precision,
    aliases, begins_with_zeros, results_of_children, scalars, states, changed_view,
    by_calls, passed_down,
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
@pytest.mark.parametrize("early", [True, False])
def test_as_uncompiled(model: Any, early: bool) -> None:
    fast = cortex.compile(model, W, **({"examples": [tree().children[1]]} if early else {}))
    found, expected = fast(tree()), model(tree(), W)
    if model is states:
        found, expected = found.h, expected.h
    assert_allclose(np.asarray(found[0] if isinstance(found, tuple) else found), expected, rtol=1e-5, atol=1e-5)


def test_uncompiled_runs_change_what_numpy_changes() -> None:
    node = tree().children[0]
    assert_allclose(computed_from_a_field(node, W), 2 * (W["b"] - node.x), rtol=1e-6)


def a_weight(node: Any, w: Any) -> Any:
    v = w.emb[node.word]
    v += 1
    return v


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


def seen_by_a_view(node: Any, w: Any) -> Any:
    v = w.U * 2
    row = v[0]
    row += node.x
    return v @ w.b


def view_of_changed(node: Any, w: Any) -> Any:
    v = w.U * 2
    row = v[0]
    v += 1
    return row


def computed_under_two_names(node: Any, w: Any) -> Any:
    v = node.d * 2
    u = v
    u += w.b
    return v


def another_shape(node: Any, w: Any) -> Any:
    v = w.b * 2
    v += w.U
    return v[0]


def a_held_array(node: Any, w: Any) -> Any:
    total = HELD
    total += w.b
    return total + cortex.sum(w.b for _ in node.children)


def held_by_an_object(node: Any, w: Any) -> Any:
    total = SETTINGS.start
    total += w.b
    return total


def a_default(node: Any, w: Any, total: Any = np.zeros(3, np.float32)) -> Any:  # noqa: B008 - that is the point
    total += w.b
    return total * 1


def an_array_with_two_names(node: Any, w: Any) -> Any:
    total = np.zeros(3, np.float32)
    same = total
    total += w.b
    return w.b * same


def a_state_of_a_child(node: Any, w: Any) -> Any:
    node.h = cortex.tanh(node.x + w.b)
    for c in node.children:
        MADE["a_state_of_a_child"](c, w)
        h = c.h
        h += 1
    return node.h


def an_argument(node: Any, w: Any, above: Any = None) -> Any:
    if above is not None:
        above += w.b
    h = w.b * node.k
    for c in node.children:
        MADE["an_argument"](c, w, h)
    return h


REFUSED = [
    a_weight, a_field, part_of_a_field, a_list, seen_by_a_view, view_of_changed,
    computed_under_two_names, another_shape, a_held_array,
    held_by_an_object, a_default, an_array_with_two_names, a_state_of_a_child, an_argument,
]  # fmt: skip
MADE = {f.__name__: cortex.model(f) for f in REFUSED}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("early", [True, False])
def test_what_others_see_is_not_changed(name: str, early: bool, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(MADE[name], W, **({"examples": [tree()]} if early else {}))(tree())
    golden(f"errors/in_place/{name}", str(caught.value).split("\n")[0])
