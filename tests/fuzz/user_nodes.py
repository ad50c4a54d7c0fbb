"""Nodes of random user programs: classes with fields of many types, and structures of many shapes.

The file is imported by the programs too, as a user's own module of nodes would be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from random_structures import link_children

H, WORDS = 3, 7
T0 = 1_700_000_000
TAGS = ("a", "b", "c")
TEXTS = ("and", "bread", "no", "note", "x")


@dataclass(eq=False)
class Node:
    """A node: `opt` may be None, `mixed` is of one type or another, `extra` is missing on some.

    `parent` is the last node that has it as a child.
    """

    word: int
    k: int
    size: int
    s: float
    t: int
    big: int
    flag: bool
    tag: str
    text: str
    opt: float | None
    tokens: list[int]
    x: Any
    mixed: Any
    huge: int
    np_int: Any
    np_float: Any
    children: list[Node] = field(default_factory=list)
    left: Node | None = None
    right: Node | None = None
    parent: Node | None = None

    def degree(self) -> int:
        """How many children there are."""
        return len(self.children)


class Leaf(Node):
    """A node without children."""


class Inner(Node):
    """A node with children."""


class Call(Inner):
    """Another class of nodes with children."""


def random_node(rng: Random, array: Any) -> Node:
    """A node without children; `array` makes its vector."""
    node = Leaf(
        word=rng.randrange(WORDS),
        k=rng.randrange(5),
        size=rng.randint(1, 9),
        s=float(np.float32(rng.uniform(-1.5, 1.5))),
        t=T0 + rng.randrange(200_000),
        big=2**40 + rng.randrange(2**40),
        flag=rng.random() < 0.5,
        tag=rng.choice(TAGS),
        text=rng.choice(TEXTS),
        opt=None if rng.random() < 0.5 else rng.uniform(0.1, 1.0),
        tokens=[rng.randrange(WORDS) for _ in range(rng.randrange(4))],
        x=array([rng.uniform(-1, 1) for _ in range(H)]),
        mixed=rng.choice((1, 1.0, True, 2, 2.5, False, -3)),
        huge=2**70 + rng.randrange(2**20),
        np_int=np.int64(rng.randrange(5)),
        np_float=np.float32(rng.uniform(-1, 1)),
    )
    if rng.random() < 0.3:
        node.extra = rng.uniform(-1, 1)  # type: ignore[attr-defined]
    return node


def structure(seed: int, shape: str, count: int, array: Any) -> Node:
    """A structure of `count` nodes: "random", "chain", "star", or "dag", which shares nodes."""
    rng = Random(f"user {seed} {shape} {count}")
    nodes = [random_node(rng, array) for _ in range(count)]
    link_children(rng, nodes, shape, 9)
    for node in nodes:
        if node.children:
            node.__class__ = rng.choice((Inner, Inner, Call))
            node.left, node.right = node.children[0], node.children[-1] if len(node.children) > 1 else None
        for child in node.children:
            child.parent = node
    return nodes[0]


def structures(seed: int, shared: bool, array: Any) -> list[Node]:
    """Structures for one program; the first ones are its examples."""
    rng = Random(f"structures {seed}")
    shapes = ["random", "random", "random", "star", "chain", "dag" if shared else "random", "random"]
    counts = [rng.randint(3, 6), rng.randint(3, 6), 2, rng.choice((4, 5, 6, 10)), 3, 5, 1]
    return [structure(seed * 100 + i, *each, array) for i, each in enumerate(zip(shapes, counts, strict=True))]
