"""Forests from edge lists, and the names that errors call their nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex import Forest
from cortex.errors import StructureError


def lists(forest: Forest) -> list[list[int]]:
    pointer, index = forest.lists["children"]
    return [index[pointer[i] : pointer[i + 1]].tolist() for i in range(forest.num_nodes)]


def test_both_directions() -> None:
    down = Forest.from_edges([0, 2, 0], [2, 3, 1], child="target")
    assert lists(down) == [[2, 1], [], [3], []]
    assert down.roots.tolist() == [0]
    up = Forest.from_edges([0, 2, 0], [2, 3, 1], child="source")
    assert lists(up) == [[], [0], [0], [2]]
    assert up.roots.tolist() == [1, 3]


def test_repeated_edges_isolated_nodes_and_nothing() -> None:
    assert lists(Forest.from_edges([1, 1], [0, 0], child="target", num_nodes=3)) == [[], [0, 0], []]
    assert Forest.from_edges([1, 1], [0, 0], child="target", num_nodes=3).roots.tolist() == [1, 2]
    empty = Forest.from_edges([], [], child="target")
    assert (empty.num_nodes, empty.roots.tolist()) == (0, [])
    alone = Forest.from_edges([], [], child="source", num_nodes=2, fields={"word": [1, 2]}, roots=[1])
    assert alone.roots.tolist() == [1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.sampled_from(["source", "target"]))
def test_agrees_with_the_lists_of_children(pairs: list[tuple[int, int]], child: Any) -> None:
    edges = [(min(p), max(p)) for p in pairs if p[0] != p[1]]
    below: list[list[int]] = [[] for _ in range(10)]
    for parent, other in edges:
        below[parent].append(other)
    ends = [[e[0] for e in edges], [e[1] for e in edges]]
    if child == "source":
        ends.reverse()
    forest = Forest.from_edges(np.array(ends[0], int), np.array(ends[1], int), child=child, num_nodes=10)
    assert lists(forest) == below
    assert forest.roots.tolist() == [i for i in range(10) if not any(i in kids for kids in below)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"child": "parent"}, "say which end of an edge is the child, 'target' where edges lead from parents to child"),
        ({"target": [1]}, "source and target must have one entry per edge each, but their lengths are {'source': 2"),
        ({"num_nodes": 2}, "target[1] is 2, which is no node; the forest has nodes 0 to 1"),
        ({"source": [0, -1]}, "source[1] is -1, which is no node"),
        ({"num_nodes": 0}, "source[0] is 0, which is no node; the forest has no nodes"),
        ({"source": [0.5, 1.5]}, "source has elements of type float64; it must be an array of integers"),
        ({"source": [[0, 1]]}, "source has 2 dimensions; it must be a one-dimensional array of integers"),
        ({"target": [1, 0]}, "node 0 is below itself: 0 -> 1 -> 0"),
        ({"target": [1, 0], "names": ["a", ("b", 1)]}, "node 'a' is below itself: 'a' -> ('b', 1) -> 'a'"),
    ],
)
def test_what_is_wrong(given: dict[str, Any], message: str) -> None:
    with pytest.raises(StructureError) as caught:
        Forest.from_edges(**{"source": [0, 1], "target": [1, 2], "child": "target", **given})
    assert message in str(caught.value)


def test_a_node_shows_its_name() -> None:
    forest = Forest.from_parents([-1, 0], names=["top", "below"])
    assert repr(forest.node(0).children[0]) == "<node 'below' of a forest>"
    assert repr(Forest.from_parents([-1, 0]).node(1)) == "<node 1 of a forest>"
