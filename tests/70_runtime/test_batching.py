"""The groups of every batching policy are those a straightforward implementation gives, and keep the contract."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import least

from cortex import _native
from cortex.runtime.forest import Forest

KINDS = 3
POLICIES = ["height", "depth", "agenda", "none"]
Groups = list[tuple[int, list[int]]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Children, which all have larger indices or all smaller ones, and the kind of every node."""
    n = draw(st.integers(0, 14))
    below = [draw(st.lists(st.integers(v + 1, n - 1), max_size=3)) if v + 1 < n else [] for v in range(n)]
    if draw(st.booleans()):
        below = [[n - 1 - c for c in children] for children in reversed(below)]
    return below, [draw(st.integers(0, KINDS - 1)) for _ in range(n)]


def longest(below: list[list[int]]) -> list[int]:
    """The longest way from every node along `below`."""
    found = [-1] * len(below)
    while -1 in found:
        for v, next_nodes in enumerate(below):
            if all(found[c] >= 0 for c in next_nodes):
                found[v] = 1 + max((found[c] for c in next_nodes), default=-1)
    return found


def levels(below: list[list[int]], kinds: list[int]) -> list[int]:
    """The greatest number of nodes of its own kind on a way down from every node."""

    def most(v: int, kind: int) -> int:
        return (kinds[v] == kind) + max((most(c, kind) for c in below[v]), default=0)

    return [most(v, kind) for v, kind in enumerate(kinds)]


def groups_of(policy: str, below: list[list[int]], kinds: list[int]) -> Groups:
    """Kind and nodes of every group, in the order they run, as lower/linear_form.py words it."""
    nodes = range(len(below))
    if policy == "agenda":
        groups: Groups = []
        done: set[int] = set()
        level = levels(below, kinds)
        while len(done) < len(below):
            shares: list[tuple[Fraction, int, int]] = []
            for k in range(KINDS):
                turns = sum(kind == k for kind, _ in groups)
                following = [v for v in nodes if v not in done and kinds[v] == k and level[v] <= turns + 1]
                ready = [v for v in following if done.issuperset(below[v])]
                if ready:
                    shares.append((Fraction(len(ready), len(following)), len(ready), -k))
            kind = -max(shares)[2]
            groups.append(
                (kind, [v for v in nodes if v not in done and kinds[v] == kind and done.issuperset(below[v])])
            )
            done.update(groups[-1][1])
        return groups
    above = [[p for p in nodes if v in below[p]] for v in nodes]
    rank = [-d for d in longest(above)] if policy == "depth" else longest(below)
    keys = sorted({(rank[v], kinds[v]) for v in nodes})
    groups = [(k, [v for v in nodes if (rank[v], kinds[v]) == (r, k)]) for r, k in keys]
    return [(k, [v]) for k, group in groups for v in group] if policy == "none" else groups


def spec_of(policy: str, own: list[bool]) -> dict[str, Any]:
    by_tag = ("test", ("value", "tag", ()), {str(t): ("kind", t) for t in range(KINDS)})
    return {
        "slots": [], "lists": ["children"], "accessors": {}, "num_kinds": KINDS, "tree": by_tag, "int_fields": [],
        "float_fields": [], "batching": policy, "own_group": own,
    }  # fmt: skip


def forest_of(below: list[list[int]], kinds: list[int]) -> Forest:
    index = [c for each in below for c in each]
    return Forest.from_children(np.cumsum([0, *map(len, below)]), index, fields={"tag": [str(k) for k in kinds]})


@pytest.mark.parametrize("own", [[True, True, True], [False, True, False], [False, False, False]], ids=str)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=100)
@given(graph=graphs())
def test_groups(policy: str, own: list[bool], graph: tuple[list[list[int]], list[int]]) -> None:
    below, kinds = graph
    shared = [k for k in range(KINDS) if not own[k]]
    found = _native.Linearizer(spec_of(policy, own)).linearize(forest_of(below, kinds))
    arrays, ids = found["arrays"], found["arrays"]["order"]
    node_of = np.argsort(ids)
    groups = [
        (int(k), node_of[start : start + length].tolist())
        for start, length, k in zip(arrays["group_start"], arrays["group_len"], arrays["group_kind"], strict=True)
    ]
    assert groups == groups_of(policy, below, [k if own[k] else shared[0] for k in kinds])

    assert sorted(ids) == list(range(len(below)))
    ends = arrays["group_start"] + arrays["group_len"]
    assert [len(below), *arrays["group_start"]] == [*ends, 0 if len(below) else len(below)]
    place = {v: number for number, (_, group) in enumerate(groups) for v in group}
    for v, children in enumerate(below):
        assert all(ids[c] > ids[v] and place[c] < place[v] for c in children)
    for k in range(KINDS):
        of_kind = arrays["kind_node"][arrays["kind_start"][k] : arrays["kind_start"][k + 1]].tolist()
        assert of_kind == sorted((int(ids[v]) for v in range(len(below)) if kinds[v] == k), reverse=True)
    assert ("node_kind" in arrays) == bool(shared)
    if shared:
        assert arrays["node_kind"][ids].tolist() == kinds
    most = max((sum(len(below[v]) for v in group) for _, group in groups), default=0)
    assert found["sizes"]["max_children_edges"] == most


@pytest.mark.parametrize("policy", POLICIES)
def test_a_million_nodes_take_about_a_second(policy: str) -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    parents = np.concatenate(([-1], rng.integers(np.maximum(0, np.arange(1, n) - 50), np.arange(1, n))))
    forest = Forest.from_parents(parents, fields={"tag": [str(k) for k in rng.integers(0, KINDS, n)]})
    linearizer = _native.Linearizer(spec_of(policy, [True] * KINDS))
    found = linearizer.linearize(forest)
    assert least(lambda: linearizer.linearize(forest), 2) < 5
    assert (found["arrays"]["children_child"] > found["arrays"]["children_parent"]).all()


def test_an_agenda_waits_for_what_can_run_together() -> None:
    """b waits for the b above an a, though more of them are ready than a; by height it has one group more."""
    below, kinds = [[1], [2], [], [4], [], [6], []], [1, 0, 2, 1, 2, 1, 2]
    agenda, height = ([(k, len(nodes)) for k, nodes in groups_of(p, below, kinds)] for p in ("agenda", "height"))
    assert agenda == [(2, 3), (0, 1), (1, 3)]
    assert height == [(2, 3), (0, 1), (1, 2), (1, 1)]


def test_an_agenda_of_many_kinds_tells_no_levels_apart() -> None:
    """A chain runs from its end, with more kinds than levels are kept for."""
    spec = spec_of("agenda", [True] * 40)
    forest = Forest.from_children([0, 1, 2, 3, 3], [1, 2, 3], fields={"tag": ["0", "1", "0", "1"]})
    spec |= {"num_kinds": 40}
    arrays = _native.Linearizer(spec).linearize(forest)["arrays"]
    assert arrays["group_kind"].tolist() == [1, 0, 1, 0]


def test_a_policy_must_be_known() -> None:
    with pytest.raises(ValueError, match="unknown batching 'width'"):
        _native.Linearizer(spec_of("width", [True] * KINDS))
    with pytest.raises(ValueError, match="one entry per kind in 'own_group'"):
        _native.Linearizer(spec_of("height", [True]))
