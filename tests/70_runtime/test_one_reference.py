"""Nodes that one place refers to are not looked up by identity; those that two ways lead to are one node still."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.errors import StructureError

WEIGHTS = {"emb": np.arange(12, dtype=np.float32).reshape(4, 3)}


@cortex.model
def below(node: Any, w: Any) -> Any:
    """The sum of the embeddings of all nodes, with the nodes that several ways lead to counted for each."""
    total = w.emb[node.word]
    if node.children:
        total = total + cortex.sum(below(k, w).h for k in node.children)
    return cortex.state(h=total)


@cortex.model
def chain(node: Any, w: Any) -> Any:
    """The same along `next`."""
    h = w.emb[node.word]
    return cortex.state(h=h if node.next is None else h + chain(node.next, w).h)


class Node:
    """A node whose attributes are slots."""

    __slots__ = ("children", "next", "word")

    def __init__(self, word: int, children: Any = (), after: Any = None) -> None:
        self.word, self.children, self.next = word, children, after


class Viewing:
    """A node whose children are a property: those of another node."""

    def __init__(self, word: int, other: Node) -> None:
        self.word, self.other = word, other

    @property
    def children(self) -> Any:
        """Somebody else's."""
        return self.other.children


def num_nodes(model: Any, root: Any) -> int:
    return cortex.compile(model, WEIGHTS)(root).nodes.h.shape[0]


def test_a_tree_whose_nodes_have_one_reference_each() -> None:
    assert num_nodes(below, Node(1, [Node(2), Node(3, (Node(0), Node(1)))])) == 5


def test_a_list_in_two_nodes() -> None:
    kids = [Node(2), Node(3)]
    root = Node(1, [Node(0, kids), Node(1, kids)])
    del kids
    assert num_nodes(below, root) == 5


def test_a_child_in_two_lists() -> None:
    shared = Node(2)
    root = Node(1, [Node(0, [shared]), Node(1, [shared]), shared])
    del shared
    assert num_nodes(below, root) == 4


@pytest.mark.parametrize("plain_first", [True, False])
def test_a_property_leads_to_nodes_of_another_ones_slot(plain_first: bool) -> None:
    plain = Node(0, [Node(2), Node(3)])
    viewing = Viewing(1, plain)
    root = Node(1, [plain, viewing] if plain_first else [viewing, plain])
    del plain, viewing
    assert num_nodes(below, root) == 5


def test_a_node_that_is_a_root_and_below_another() -> None:
    inner = Node(2, [Node(3)])
    out = cortex.compile(below, WEIGHTS)([Node(1, [inner]), inner])
    assert out.nodes.h.shape[0] == 3
    np.testing.assert_array_equal(out.h[1], WEIGHTS["emb"][2] + WEIGHTS["emb"][3])


def test_cycles_are_found_where_no_node_has_a_name() -> None:
    first = Node(1, after=Node(2, after=Node(3)))
    first.next.next.next = first.next
    fast = cortex.compile(chain, WEIGHTS, examples=[Node(1, after=Node(2))])
    with pytest.raises(StructureError, match="must not contain a cycle"):
        fast(first)
    first.next.next = first
    with pytest.raises(StructureError, match="must not contain a cycle"):
        fast([first])


def test_a_long_chain_has_as_many_nodes_as_objects() -> None:
    last = None
    for i in range(10_000):
        last = Node(i % 4, after=last)
    assert num_nodes(chain, last) == 10_000


def test_objects_are_let_go() -> None:
    leaf, kids = Node(2), [Node(3)]
    root = Node(1, [leaf, Node(0, kids)])
    before = [sys.getrefcount(x) for x in (leaf, kids, root)]
    fast = cortex.compile(below, WEIGHTS)
    for _ in range(20):
        fast(root)
    assert [sys.getrefcount(x) for x in (leaf, kids, root)] == before
