"""Node classes, the walk over them, and the small adapters: linked lists, grids."""

import random

import extreme_structures
import pytest

from cortex.errors import StructureError
from cortex.structures import generators
from cortex.structures.grid import grid
from cortex.structures.sequences import sequence
from cortex.structures.tree import BinaryNode, Link, Node, Size, below, measure, postorder, with_children
from cortex.structures.vocabulary import hashed, word_ids


def to_nested(node: Node | BinaryNode) -> object:
    children = below(node)
    return tuple(to_nested(child) for child in children) if children else node.word


def test_postorder_visits_children_first_and_shared_nodes_once() -> None:
    shared = Node((), 1)
    left = Node((shared,), 2)
    root = Node((left, shared), 3)
    assert [node.word for node in postorder(root)] == [1, 2, 3]
    assert measure(root) == Size(nodes=3, leaves=1, levels=3)


def test_postorder_refuses_a_cycle() -> None:
    top = Node()
    top.children = (Node((top,)),)
    with pytest.raises(StructureError, match="reached again from below itself"):
        postorder(top)


def test_a_chain_deeper_than_the_recursion_limit() -> None:
    assert measure(extreme_structures.chain(random.Random(0), 200_000)) == Size(200_000, 1, 200_000)


def test_with_children_keeps_the_tree() -> None:
    tree = generators.parse_tree(random.Random(3))
    assert to_nested(with_children(tree)) == to_nested(tree)


def test_sequence_is_read_from_its_end() -> None:
    last: Link | None = sequence([4, 5, 6])
    seen = []
    while last is not None:
        seen.append(last.word)
        last = last.prev
    assert seen == [6, 5, 4]
    with pytest.raises(StructureError, match="at least one word"):
        sequence([])


def test_grid_has_left_and_upper_neighbours() -> None:
    corner = grid(2, 3, range(6))
    assert corner.word == 5
    assert [child.word for child in corner.children] == [4, 2]
    assert corner.children[0].children[1] is corner.children[1].children[0]
    assert measure(corner) == Size(nodes=6, leaves=1, levels=4)
    assert measure(grid(10, 10, [0] * 100)).levels == 19
    with pytest.raises(StructureError, match=r"grid\(2, 2, 3 words\)"):
        grid(2, 2, [1, 2, 3])


def test_vocabularies() -> None:
    assert hashed(1000)("lovely") == 102  # CRC-32 894408102
    assert word_ids({"a": 3})("a") == 3
    assert word_ids(len)("abc") == 3
    with pytest.raises(StructureError, match="'b': it is not in the vocabulary of 1 words"):
        word_ids({"a": 3})("b")
    with pytest.raises(StructureError, match="positive size"):
        hashed(0)
