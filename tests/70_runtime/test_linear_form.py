"""The linear form of random structures is the one a straightforward implementation gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex import _native
from cortex.runtime.forest import Forest

SLOTS, LISTS = ["left", "right"], ["children", "more"]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, list[int]], dict[str, list[list[int]]], list[int], list[int]]:
    """Slots, lists, tags and roots of a graph whose children have larger indices, so that it has no cycle."""
    n = draw(st.integers(0, 12))
    below = [st.integers(v + 1, n - 1) if v + 1 < n else st.nothing() for v in range(n)]
    slots = {name: [draw(st.one_of(st.just(-1), below[v])) for v in range(n)] for name in SLOTS}
    lists = {name: [draw(st.lists(below[v], max_size=3 if v + 1 < n else 0)) for v in range(n)] for name in LISTS}
    tags = [draw(st.integers(0, 2)) for _ in range(n)]
    roots = draw(st.lists(st.integers(0, n - 1), max_size=4)) if n else []
    return slots, lists, tags, roots


def tagged_spec(spec: Any) -> dict[str, Any]:
    by_tag = ("test", ("value", "tag", ()), {t: ("kind", t) for t in range(3)})
    made: dict[str, Any] = spec(
        SLOTS, LISTS, num_kinds=3, tree=by_tag, uses=[["word"], [], ["word"]], needs=[[], [], []]
    )
    return made


def preorder(slots: Any, lists: Any, roots: list[int]) -> list[int]:
    """The nodes that the roots reach, in the order of first visit."""
    seen: dict[int, None] = {}

    def visit(v: int) -> None:
        if v in seen:
            return
        seen[v] = None
        for child in [slots[s][v] for s in SLOTS] + [c for r in LISTS for c in lists[r][v]]:
            if child >= 0:
                visit(child)

    for r in roots:
        visit(r)
    return list(seen)


@settings(max_examples=300)
@given(graphs())
def test_objects(node: Any, spec: Any, straightforward: Any, same_form: Any, graph: Any) -> None:
    slots, lists, tags, roots = graph
    n = len(tags)
    nodes = [node(tag=tags[v], word=v) for v in range(n)]
    for v in range(n):
        for s in SLOTS:
            setattr(nodes[v], s, nodes[slots[s][v]] if slots[s][v] >= 0 else None)
        for r in LISTS:
            setattr(nodes[v], r, [nodes[c] for c in lists[r][v]])
    found = _native.Linearizer(tagged_spec(spec)).linearize([nodes[r] for r in roots])

    visited = preorder(slots, lists, roots)
    number = {v: i for i, v in enumerate(visited)} | {-1: -1}
    expected = straightforward(
        {s: [number[slots[s][v]] for v in visited] for s in SLOTS},
        {r: [[number[c] for c in lists[r][v]] for v in visited] for r in LISTS},
        [tags[v] for v in visited],
        3,
        [number[r] for r in roots],
    )
    same_form(found, expected)
    words = found["arrays"]["field_word"][found["arrays"]["order"]]
    assert words.tolist() == [0 if tags[v] == 1 else v for v in visited]


@settings(max_examples=300)
@given(graphs())
def test_arrays(spec: Any, straightforward: Any, same_form: Any, graph: Any) -> None:
    slots, lists, tags, roots = graph
    n = len(tags)
    forest = Forest.from_slots(slots, fields={"tag": tags, "word": list(range(n))}, roots=roots)
    only_slots = tagged_spec(spec) | {"lists": []}
    same_form(_native.Linearizer(only_slots).linearize(forest), straightforward(slots, {}, tags, 3, roots))

    children = lists["children"]
    pointer = np.cumsum([0, *map(len, children)])
    index = [c for each in children for c in each]
    forest = Forest.from_children(pointer, index, fields={"tag": [str(t) for t in tags]}, roots=roots)
    by_tag = ("test", ("value", "tag", ()), {str(t): ("kind", t) for t in range(3)})
    only_children = spec([], ["children"], num_kinds=3, tree=by_tag, uses=[[], [], []], needs=[[]] * 3)
    found = _native.Linearizer(only_children).linearize(forest)
    same_form(found, straightforward({}, {"children": children}, tags, 3, roots))


def test_a_shared_node_is_one_node(node: Any, linearizer: Any) -> None:
    shared = node(children=[], word=7)
    top = node(children=[shared, node(children=[shared]), shared])
    found = linearizer(lists=["children"]).linearize([top, shared, top])
    assert found["sizes"]["num_nodes"] == 3
    assert found["sizes"]["num_children_edges"] == 4
    assert found["arrays"]["root"].tolist() == [0, 2, 0]


def test_a_million_deep_chain(node: Any, linearizer: Any) -> None:
    depth = 1_000_000
    chain = [node(next=None, word=1)]
    for _ in range(depth - 1):
        chain.append(node(next=chain[-1], word=0))
    found = linearizer(["next"]).linearize([chain[-1]])
    assert found["sizes"]["num_groups"] == depth
    assert (found["arrays"]["child_next"][:-1] == np.arange(1, depth)).all()
    while chain:  # from the top, so that Python's own destructor does not recurse either
        chain.pop()


def test_a_star(node: Any, linearizer: Any) -> None:
    star = node(children=[node(children=[], word=i % 1000) for i in range(100_000)])
    found = linearizer(lists=["children"]).linearize([star])
    assert found["sizes"]["max_children_edges"] == found["sizes"]["max_group"] == 100_000
    assert (found["arrays"]["field_word"][1:] == np.arange(100_000) % 1000).all()


def test_nothing(linearizer: Any) -> None:
    found = linearizer(["left"], ["children"]).linearize([])
    assert set(found["sizes"].values()) == {0}
    assert found["arrays"]["kind_start"].tolist() == [0, 0, 0]
    assert found["arrays"]["children_ptr"].tolist() == [0]


@pytest.mark.parametrize("children", ["kids", ("left", "absent", "right"), lambda n: (k for k in n.kids)])
def test_what_children_means(node: Any, linearizer: Any, children: Any) -> None:
    a, b = node(word=1), node(word=2)
    a.kids = b.kids = None
    a.left = a.right = b.left = b.right = None
    if callable(children):
        a.kids = b.kids = ()
    top = node(kids=[a, b], left=a, right=b)
    found = linearizer(lists=["children"], accessors={"children": children}).linearize([top])
    assert found["arrays"]["children_child"].tolist() == [1, 2]
    assert found["arrays"]["field_word"].tolist() == [0, 1, 2]
