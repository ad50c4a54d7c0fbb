"""Children that are not treated alike keep a kind for each number of them, which says why."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from loops import WEIGHTS, Combine, H, Node, Trace, assert_same, checked, is_per_arity, model_of, star, tree, weights

import cortex

BY_POSITION = weights(E=(7, H), U=(9, H, H), W=(H, 9 * H), b=(H,))

NOT_ALIKE: dict[str, tuple[Combine, str]] = {
    "numbered": (lambda node, w, s: sum((i + 1.0) * h for i, h in enumerate(s)), "enter a sum differently"),
    "weights by position": (lambda node, w, s: sum(w.U[i] @ h for i, h in enumerate(s)), "enter a sum differently"),
    "columns by position": (lambda node, w, s: w.W[:, : len(s) * H] @ cortex.concat(s), "enter a sum differently"),
    "first child": (lambda node, w, s: s[0] + sum(s), "child 0 of 'children' alone"),
    "last child": (lambda node, w, s: s[-1], "child 4 of 'children' alone"),
    "all but the first": (lambda node, w, s: sum(s[1:], w.b), "enter a sum differently"),
    "neighbours": (lambda node, w, s: sum((a * b for a, b in itertools.pairwise(s)), w.b), "combined by 'mul'"),
    "pairs": (
        lambda node, w, s: (cortex.softmax(cortex.stack(s) @ cortex.stack(s).T, axis=1) @ cortex.stack(s)).sum(axis=0),
        "combined by a matrix product",
    ),
    "alternating": (lambda node, w, s: sum(h if i % 2 else -h for i, h in enumerate(s)), "enter a sum differently"),
    "at most ten": (lambda node, w, s: sum(s[:10]), "enter a sum differently"),
    "a power of n": (lambda node, w, s: sum(s) * float(2 ** len(s)), "depends on the number of children in no way"),
    "different for many": (lambda node, w, s: sum(s) if len(s) < 10 else w.b, "something else"),
}


@pytest.mark.parametrize("name", NOT_ALIKE)
def test_a_kind_for_each_number(name: str) -> None:
    combine, reason = NOT_ALIKE[name]
    model = model_of(combine)
    trace = Trace(model, BY_POSITION)
    for root in (star(3), tree(Random(0), 3, 5)):
        assert_same(trace, model, root, BY_POSITION)
    assert all(is_per_arity(k) for k in checked(trace).kinds if k.name != "leaf")
    assert any(reason in line for line in trace.per_arity()), trace.per_arity()


def test_the_line_that_stands_in_the_way_is_said() -> None:
    trace = Trace(model_of(NOT_ALIKE["neighbours"][0]), BY_POSITION)
    trace.see([star(2)])
    (line,) = trace.per_arity()
    assert line.startswith("one kind for each number of children in 'children' (children_2): ")
    assert "(line " in line


def test_what_depends_on_a_tag_of_a_child() -> None:
    @cortex.model
    def tagged(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.E[node.word]
        s = w.b
        for child in node.children:
            s = s + (2.0 if child.op == "p" else 1.0) * tagged(child, w)
        return s

    trace = Trace(tagged, WEIGHTS)
    assert_same(trace, tagged, tree(Random(3), 2, 3))
    assert "what it does depends on 'op' of a child" in trace.per_arity()[0]


def test_what_depends_on_a_child_lacking_something() -> None:
    @cortex.model
    def optional(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.E[node.word]
        s = w.b
        for child in node.children:
            s = s + (optional(child, w) if child.x is None else child.x * optional(child, w))
        return s

    root = star(2)
    trace = Trace(optional, WEIGHTS)
    assert_same(trace, optional, root)
    assert "whether 'x' of a child is None" in trace.per_arity()[0]
    root.children[1].x = None
    assert_same(trace, optional, root)


def test_what_looks_below_a_child() -> None:
    @cortex.model
    def grandparent(node: Any, w: Any) -> Any:
        if node.next is None:
            return w.b
        s = w.b
        for child in node.children:
            s = s + grandparent(child.next, w)
        return s + grandparent(node.next, w)

    end = Node(next=None, children=[])
    leaf = Node(next=end, children=[])
    trace = Trace(grandparent, WEIGHTS)
    assert_same(trace, grandparent, Node(next=end, children=[leaf, leaf]))
    assert trace.per_arity()
