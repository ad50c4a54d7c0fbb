"""Parts: sets of nodes that share nothing, groups cut at them, and everything else as the contract says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex import _native
from cortex.runtime.forest import Forest

KINDS = 3
POLICIES = ["height", "depth", "agenda", "none"]
Graph = tuple[list[list[int]], list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Children, which have larger indices, and the kind of every node; edges are few, so that there are many sets."""
    n = draw(st.integers(0, 20))
    reach = draw(st.sampled_from([1, 3, 20]))
    below = [
        draw(st.lists(st.integers(v + 1, min(n - 1, v + reach)), max_size=2))
        if v + 1 < n and draw(st.booleans())
        else []
        for v in range(n)
    ]
    return below, [draw(st.integers(0, KINDS - 1)) for _ in range(n)]


def spec_of(policy: str, own: list[bool], **more: Any) -> dict[str, Any]:
    by_tag = ("test", ("value", "tag", ()), {str(t): ("kind", t) for t in range(KINDS)})
    return {
        "slots": [], "lists": ["children"], "accessors": {}, "num_kinds": KINDS, "tree": by_tag, "int_fields": [],
        "float_fields": [], "batching": policy, "own_group": own, **more,
    }  # fmt: skip


def forest_of(below: list[list[int]], kinds: list[int]) -> Forest:
    index = [c for each in below for c in each]
    return Forest.from_children(np.cumsum([0, *map(len, below)]), index, fields={"tag": [str(k) for k in kinds]})


def connected(below: list[list[int]]) -> list[list[int]]:
    """The sets of nodes that edges connect, each in order, by their first nodes."""
    set_of = list(range(len(below)))
    for _ in below:
        for v, children in enumerate(below):
            for c in children:
                set_of[v] = set_of[c] = min(set_of[v], set_of[c])
    return [[v for v in range(len(below)) if set_of[v] == s] for s in sorted(set(set_of))]


def divided(below: list[list[int]], parts: int) -> list[set[int]]:
    """The nodes of every part, as lower/linear_form.py words it."""
    sets = sorted(connected(below), key=len, reverse=True)
    found: list[set[int]] = [set() for _ in range(min(parts, len(sets)))]
    for each in sets:
        min(found, key=len).update(each)
    return found


def groups_of(form: dict[str, Any]) -> list[tuple[int, list[int]]]:
    """Kind and nodes, in the user's order, of every group."""
    arrays = form["arrays"]
    node_of = np.argsort(arrays["order"])
    spans = zip(arrays["group_start"], arrays["group_len"], arrays["group_kind"], strict=True)
    return [(int(k), node_of[start : start + length].tolist()) for start, length, k in spans]


@pytest.mark.parametrize("own", [[True, True, True], [False, True, False]], ids=str)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60)
@given(graph=graphs(), parts=st.integers(1, 5))
def test_parts(policy: str, own: list[bool], graph: Graph, parts: int) -> None:
    below, kinds = graph
    forest = forest_of(below, kinds)
    whole = _native.Linearizer(spec_of(policy, own)).linearize(forest)
    found = _native.Linearizer(spec_of(policy, own, parts=True)).linearize(forest, parts)
    arrays, groups = found["arrays"], groups_of(found)
    firsts = arrays["part_group"].tolist()
    assert [firsts[0], firsts[-1], len(firsts)] == [0, len(groups), found["sizes"]["num_parts"] + 1]

    expected = divided(below, parts)
    per_part = [groups[a:b] for a, b in pairwise(firsts)]
    assert [{v for _, nodes in each for v in nodes} for each in per_part] == expected
    # The policy's groups, cut.
    cuts = [[(k, [v for v in nodes if v in part]) for k, nodes in groups_of(whole)] for part in expected]
    assert per_part == [[(k, nodes) for k, nodes in each if nodes] for each in cuts]
    # Children are of the same part, have greater ids, and run before.
    ids, place = arrays["order"], {v: g for g, (_, nodes) in enumerate(groups) for v in nodes}
    part_of = {v: p for p, nodes in enumerate(expected) for v in nodes}
    for v, children in enumerate(below):
        assert all(ids[c] > ids[v] and place[c] < place[v] and part_of[c] == part_of[v] for c in children)
    ends = arrays["group_start"] + arrays["group_len"]
    assert [len(below), *arrays["group_start"]] == [*ends, 0 if len(below) else len(below)]
    assert found["sizes"]["max_group"] == max((len(nodes) for _, nodes in groups), default=0)
    for k in range(KINDS):
        of_kind = arrays["kind_node"][arrays["kind_start"][k] : arrays["kind_start"][k + 1]].tolist()
        assert of_kind == sorted((int(ids[v]) for v in range(len(below)) if kinds[v] == k), reverse=True)


@settings(max_examples=60)
@given(graph=graphs(), dedup=st.booleans())
def test_one_part_changes_nothing(graph: Graph, dedup: bool) -> None:
    own = [True] * KINDS
    forest = forest_of(*graph)
    plain = _native.Linearizer(spec_of("height", own, dedup=dedup)).linearize(forest)
    found = _native.Linearizer(spec_of("height", own, dedup=dedup, parts=True)).linearize(forest)
    assert found["arrays"].pop("part_group").tolist() == [0, plain["sizes"]["num_groups"]][: 1 + bool(graph[0])]
    assert found["sizes"].pop("num_parts") == bool(graph[0])
    assert found["sizes"] == plain["sizes"]
    assert {n: a.tolist() for n, a in found["arrays"].items()} == {n: a.tolist() for n, a in plain["arrays"].items()}


def leaf_spec(**more: Any) -> dict[str, Any]:
    return {
        "slots": [], "lists": ["children"], "accessors": {}, "num_kinds": 1, "tree": ("kind", 0),
        "int_fields": [("word", 100)], "float_fields": [], "uses": [["word"]], "needs": [[]], "parts": True, **more,
    }  # fmt: skip


def tree(node: Any, word: int, *children: Any) -> Any:
    return node(word=word, children=list(children))


def parts_of_roots(form: dict[str, Any]) -> list[int]:
    """The part of every root."""
    arrays = form["arrays"]
    group = [np.flatnonzero((arrays["group_start"] <= r) & (r < arrays["group_start"] + arrays["group_len"]))[0]
             for r in arrays["root"]]  # fmt: skip
    return (np.searchsorted(arrays["part_group"], group, side="right") - 1).tolist()


def test_objects_that_share_a_node_stay_together(node: Any) -> None:
    shared = tree(node, 1)
    roots = [tree(node, 2, shared), tree(node, 3, tree(node, 4), tree(node, 5)), tree(node, 6, tree(node, 7, shared))]
    linearizer = _native.Linearizer(leaf_spec())
    assert parts_of_roots(linearizer.linearize(roots, 8)) == [0, 1, 0]
    # The same structure twice, and a part of a structure, are in one part with it.
    assert parts_of_roots(linearizer.linearize([roots[1], roots[1], roots[1].children[0], roots[0]], 8)) == [0, 0, 0, 1]


def test_merged_nodes_stay_together(node: Any) -> None:
    roots = [tree(node, 2, tree(node, 1)), tree(node, 3, tree(node, 4)), tree(node, 5, tree(node, 1))]
    assert parts_of_roots(_native.Linearizer(leaf_spec()).linearize(roots, 3)) == [0, 1, 2]
    assert parts_of_roots(_native.Linearizer(leaf_spec(dedup=True)).linearize(roots, 3)) == [0, 1, 0]


def test_parts_are_balanced(node: Any) -> None:
    chains = []
    for length in (3, 9, 1, 5, 2, 7, 4, 6):
        top = tree(node, 0)
        for _ in range(length - 1):
            top = tree(node, 0, top)
        chains.append(top)
    form = _native.Linearizer(leaf_spec()).linearize(chains, 4)
    starts = [int(form["arrays"]["group_start"][g - 1]) for g in form["arrays"]["part_group"][1:]]
    assert [a - b for a, b in pairwise([form["sizes"]["num_nodes"], *starts])] == [10, 9, 9, 9]


def test_no_structures(node: Any) -> None:
    form = _native.Linearizer(leaf_spec()).linearize([], 4)
    assert form["sizes"]["num_parts"] == 0
    assert form["arrays"]["part_group"].tolist() == [0]
