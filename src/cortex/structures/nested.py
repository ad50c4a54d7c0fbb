"""Nested sequences: `((3, 7), 2)` is a tree whose leaves carry the words 3, 7 and 2.

A tuple or list that occurs twice is one node. `Forest.from_nested` makes every occurrence a node of its own, in arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cortex.errors import StructureError
from cortex.structures.tree import BinaryNode, Node, postorder

T = TypeVar("T")


def from_nested(data: Any) -> Node:
    """The tree of nested lists and tuples: a sequence is a node with its items as children, an int is a leaf.

    A list or tuple that occurs in several places (the same object) becomes one shared node.
    """
    return _build(data, Node, lambda word: Node((), word))


def binary_from_nested(data: Any) -> BinaryNode:
    """As `from_nested`, for nested pairs."""

    def pair(items: list[BinaryNode]) -> BinaryNode:
        if len(items) != 2:
            raise StructureError(f"binary_from_nested: a sequence of {len(items)} items; every sequence must be a pair")
        return BinaryNode(items[0], items[1])

    return _build(data, pair, lambda word: BinaryNode(None, None, word))


def _build(data: Any, inner: Callable[[list[T]], T], leaf: Callable[[int], T]) -> T:
    if not _is_sequence(data):
        return leaf(_word(data))
    made: dict[int, T] = {}
    for sequence in postorder(data, lambda items: [item for item in items if _is_sequence(item)]):
        if not sequence:
            raise StructureError("reading nested sequences: an empty sequence; a node needs items, a leaf is an int")
        made[id(sequence)] = inner([made[id(i)] if _is_sequence(i) else leaf(_word(i)) for i in sequence])
    return made[id(data)]


def _is_sequence(item: Any) -> bool:
    return isinstance(item, (list, tuple))


def _word(item: Any) -> int:
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise StructureError(f"reading nested sequences: {item!r} is neither a list, a tuple nor an int")
    return int(item)
