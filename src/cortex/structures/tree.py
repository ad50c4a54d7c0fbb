"""Plain node classes, and the two questions one asks of any structure made of them: in which order, and how big.

Your own classes serve as well; these exist so that the adapters and generators have something to return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cortex.errors import StructureError

N = TypeVar("N")


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A node with any number of children. `word` is -1 where the node has no word."""

    children: Sequence[Node] = ()
    word: int = -1
    label: int | str | None = None


@dataclass(slots=True, eq=False, repr=False)
class BinaryNode:
    """An inner node with two children and no word, or a leaf with a word and no children (None)."""

    left: BinaryNode | None = None
    right: BinaryNode | None = None
    word: int = -1
    label: int | str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Link:
    """An element of a sequence; the last element stands for the whole sequence. `prev` is None in the first."""

    prev: Link | None
    word: int


def below(node: Any) -> tuple[Any, ...]:
    """The nodes directly below a `Node`, `BinaryNode`, `Link`, or an object with their attributes."""
    if hasattr(node, "children"):
        return tuple(node.children)
    if hasattr(node, "prev"):
        return () if node.prev is None else (node.prev,)
    return tuple(child for child in (node.left, node.right) if child is not None)


def postorder(root: N, below: Callable[[N], Iterable[N]] = below) -> list[N]:
    """Every node reachable from `root` once (by identity), each after all nodes below it, left to right.

    Iterative: depth is bounded by memory only. A node below itself is a StructureError.
    """
    order: list[N] = []
    open_: set[int] = {id(root)}
    seen: set[int] = {id(root)}
    stack = [(root, iter(below(root)))]
    while stack:
        node, rest = stack[-1]
        for child in rest:
            key = id(child)
            if key not in seen:
                seen.add(key)
                open_.add(key)
                stack.append((child, iter(below(child))))
                break
            if key in open_:
                raise StructureError(
                    f"walking a structure: {child!r} is reached again from below itself; "
                    "a tree or an acyclic graph is needed"
                )
        else:
            stack.pop()
            open_.discard(id(node))
            order.append(node)
    return order


@dataclass(frozen=True, slots=True)
class Size:
    """How big a structure is: its nodes, those without children, and the nodes on its longest path."""

    nodes: int
    leaves: int
    levels: int


def measure(root: Any) -> Size:
    """The size of a structure; shared nodes count once."""
    level: dict[int, int] = {}
    leaves = 0
    order = postorder(root)
    for node in order:
        children = below(node)
        leaves += not children
        level[id(node)] = 1 + max((level[id(child)] for child in children), default=0)
    return Size(len(order), leaves, level[id(root)])


def with_children(root: BinaryNode) -> Node:
    """The same tree as `Node` objects, for models that read `node.children`."""
    made: dict[int, Node] = {}
    for node in postorder(root):
        made[id(node)] = Node([made[id(child)] for child in below(node)], node.word, node.label)
    return made[id(root)]
