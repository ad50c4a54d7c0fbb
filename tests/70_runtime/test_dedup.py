"""Equal subtrees become one node, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import least

from cortex import _native
from cortex.errors import StructureError
from cortex.runtime.forest import Forest

VALUES = [0.0, -0.0, 1.5]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int], list[int]]:
    """Children, which have larger indices; a tag, a word and the number of a vector for every node."""
    n = draw(st.integers(0, 14))
    below = [draw(st.lists(st.integers(v + 1, n - 1), max_size=2)) if v + 1 < n else [] for v in range(n)]
    tags, words, vectors = ([draw(st.integers(0, most)) for _ in range(n)] for most in (1, 1, 2))
    return below, tags, words, vectors


def spec(policy: str = "height") -> dict[str, Any]:
    """Kind 0 reads the word, kind 1 the vector, and the word of its children."""
    by_tag = ("test", ("value", "tag", ()), {t: ("kind", t) for t in range(2)})
    each = (("each", "children"),)
    return {
        "slots": [], "lists": ["children"], "accessors": {}, "num_kinds": 2, "tree": by_tag, "dedup": True,
        "int_fields": [("word", 10)], "float_fields": [("x", (2,), 4)], "uses": [["word"], ["x"]],
        "reads": [[], [("word", each)]], "batching": policy,
    }  # fmt: skip


def expected(below: list[list[int]], tags: list[int], words: list[int], vectors: list[int]) -> list[int]:
    """For every node the first node that equals it."""
    read_above = {c for v, children in enumerate(below) if tags[v] == 1 for c in children}
    first: dict[Any, int] = {}
    result = [0] * len(below)
    for v in reversed(range(len(below))):
        word = words[v] if tags[v] == 0 or v in read_above else 0
        vector = np.full(2, VALUES[vectors[v]] if tags[v] == 1 else 0.0, np.float32).tobytes()
        key = (tags[v], word, vector, tuple(result[c] for c in below[v]))
        result[v] = first.setdefault(key, v)
    return result


def check(found: dict[str, Any], graph: Any) -> None:
    below, tags, words, vectors = graph
    same, order = expected(*graph), found["arrays"]["order"].tolist()
    assert [[order[u] == order[v] for u in range(len(below))] for v in range(len(below))] == [
        [same[u] == same[v] for u in range(len(below))] for v in range(len(below))
    ]
    count = len(set(same))
    assert (found["sizes"]["num_nodes"], found["sizes"]["num_user_nodes"]) == (count, len(below))
    assert sorted(set(order)) == list(range(count))
    arrays = found["arrays"]
    for v, children in enumerate(below):
        edges = slice(arrays["children_ptr"][order[v]], arrays["children_ptr"][order[v] + 1])
        assert arrays["children_child"][edges].tolist() == [order[c] for c in children]
        assert all(order[c] > order[v] for c in children)
        if tags[v] == 0:
            assert arrays["field_word"][order[v]] == words[v]
        else:
            want = np.full(2, VALUES[vectors[v]], np.float32)
            assert found["fields"]["x"][order[v]].tobytes() == want.tobytes()
            assert [arrays["field_word"][order[c]] for c in children] == [words[c] for c in children]


@pytest.mark.parametrize("policy", ["height", "agenda"])
@settings(max_examples=200)
@given(graph=graphs())
def test_arrays(policy: str, graph: Any) -> None:
    below, tags, words, vectors = graph
    x = np.array([[VALUES[k]] * 2 for k in vectors], np.float32).reshape(-1, 2)
    index = [c for each in below for c in each]
    fields = {"tag": tags, "word": words, "x": x}
    forest = Forest.from_children(np.cumsum([0, *map(len, below)]), index, fields=fields)
    found = _native.Linearizer(spec(policy)).linearize(forest)
    check(found, graph)
    assert found["arrays"]["root"].tolist() == found["arrays"]["order"][forest.roots].tolist()


@settings(max_examples=200)
@given(graph=graphs())
def test_objects(node: Any, graph: Any) -> None:
    below, tags, words, vectors = graph
    nodes = [node(tag=t, word=w, x=[VALUES[k]] * 2) for t, w, k in zip(tags, words, vectors, strict=True)]
    for v, children in enumerate(below):
        nodes[v].children = [nodes[c] for c in children]
    linearizer = _native.Linearizer(spec())
    seen = _native.Linearizer(spec() | {"dedup": False}).linearize(nodes)["arrays"]["root"]
    found = linearizer.linearize(nodes)
    first_visit = np.empty(len(below), int)
    plain = _native.Linearizer(spec() | {"dedup": False}).linearize(nodes)["arrays"]["order"]
    for position, node_id in enumerate(plain.tolist()):
        first_visit[seen.tolist().index(node_id)] = position  # every node is also a root
    found["arrays"]["order"] = found["arrays"]["order"][first_visit]
    check(found, graph)


def test_a_tree_of_equal_leaves_is_a_chain() -> None:
    depth = 18
    n = (1 << depth) - 1
    parents = (np.arange(n) - 1) // 2
    parents[0] = -1
    plain = spec() | {"tree": ("kind", 0), "num_kinds": 1, "uses": [["word"]], "reads": [[]]}
    forest = Forest.from_parents(parents, fields={"word": np.full(n, 3)})
    linearizer = _native.Linearizer(plain)
    found = linearizer.linearize(forest)
    assert least(lambda: linearizer.linearize(forest)) < 1  # 12 ms
    assert found["sizes"]["num_nodes"] == depth
    assert found["arrays"]["children_child"].tolist() == [i for i in range(1, depth) for _ in range(2)]


def test_distinct_nodes_take_linear_time() -> None:
    one_kind = {"tree": ("kind", 0), "num_kinds": 1, "uses": [["word"]], "reads": [[]]}
    linearizer = _native.Linearizer(spec() | one_kind | {"int_fields": [("word", None)]})

    def per_node(n: int) -> float:
        words = np.arange(n) << 4  # equally spaced, as addresses and multiples are
        forest = Forest.from_children(np.zeros(n + 1, int), [], fields={"word": words})
        assert linearizer.linearize(forest)["sizes"]["num_nodes"] == n
        return least(lambda: linearizer.linearize(forest)) / n

    assert per_node(1_000_000) < 8 * per_node(50_000)  # the caches make it about 3 times as long


def test_what_is_wrong_is_told_of_the_users_node(node: Any) -> None:
    leaves = [node(tag=0, word=1, children=[]) for _ in range(3)] + [node(tag=0, word=11, children=[])]
    top = node(tag=1, x=[0.0, 0.0], children=leaves)
    with pytest.raises(StructureError, match=r"children\[3\].*'word' is 11; it must be an integer from 0 to 9"):
        _native.Linearizer(spec()).linearize([top])
