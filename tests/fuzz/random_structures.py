"""Random structures for random models: trees, chains, stars, graphs with shared nodes, single nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from random_models import TAGS, Family
from random_operators import VOCAB


@dataclass(eq=False, slots=True)
class Node:
    """A node of any family: children in a list or in slots, and all the fields that models read."""

    word: int
    tag: int
    rank: int
    op: str
    s: Any
    x: Any
    children: list[Node] = field(default_factory=list)
    left: Node | None = None
    right: Node | None = None
    prev: Node | None = None

    @property
    def is_leaf(self) -> bool:
        """Has the node no children at all?"""
        return not self.children and self.left is None and self.right is None and self.prev is None


def random_batch(seed: int, family: Family, vector: int) -> list[Node]:
    """A batch of one to six structures; the same structure may occur twice, and structures may share nodes."""
    rng = Random(f"batch {seed}")
    roots: list[Node] = []
    for _ in range(rng.choice((1, 1, 2, 3, 4, 6))):
        if roots and rng.random() < 0.1:
            roots.append(rng.choice(roots))
        else:
            roots.append(random_structure(rng, family, vector, roots))
    return roots


def random_structure(rng: Random, family: Family, vector: int, before: list[Node]) -> Node:
    """A structure; some of its nodes may be roots made before."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    count = rng.choice((1, 2, 3, 5, 8, 13, 21))
    nodes = [
        Node(
            rng.randrange(VOCAB),
            rng.randrange(VOCAB),
            rng.randrange(5),
            rng.choice(TAGS),
            float(np.float32(numbers.normal())),
            numbers.normal(size=vector).astype(np.float32),
        )
        for _ in range(count)
    ]
    shape = rng.choice(("random", "random", "chain", "star", "dag", "dag"))
    match family:
        case "children" | "arity":
            link_children(rng, nodes, shape, 3 if family == "arity" else 12)
        case "slots":
            _link_slots(rng, nodes, shape, both=False)
        case "binary":
            _link_slots(rng, nodes, shape, both=True)
        case "previous":
            _link_previous(nodes)
        case "mixed":
            link_children(rng, nodes, shape, 4)
            for i in range(count - 1):
                if rng.random() < 0.5:
                    nodes[i].prev = nodes[rng.randrange(i + 1, count)]
    if before and family == "children" and shape == "dag":
        nodes[-1].children.append(rng.choice(before))
    return nodes[0]


def _link_previous(nodes: list[Node]) -> None:
    for node, prev in pairwise(nodes):
        node.prev = prev


def link_children(rng: Random, nodes: list[Node], shape: str, most: int) -> None:
    """Every node but the first below an earlier one, with at most `most` children each (a node may come twice)."""
    for i in range(1, len(nodes)):
        free = [n for n in nodes[:i] if len(n.children) < most]
        above = free[-1] if shape == "chain" else free[0] if shape == "star" else rng.choice(free)
        above.children.append(nodes[i])
    if shape == "dag":
        for i in range(1, len(nodes)):
            free = [n for n in nodes[:i] if len(n.children) < most]
            if free and rng.random() < 0.4:
                rng.choice(free).children.append(nodes[i])


def _link_slots(rng: Random, nodes: list[Node], shape: str, both: bool) -> None:
    """Every node but the first in a slot of an earlier one; with `both`, a node has two children or none."""
    open_slots = [(nodes[0], "left"), (nodes[0], "right")]
    for node in nodes[1:]:
        slots = open_slots[-2:] if shape == "chain" else open_slots
        owner, name = rng.choice(slots)
        open_slots.remove((owner, name))
        setattr(owner, name, node)
        open_slots += [(node, "left"), (node, "right")]
    for i, node in enumerate(nodes):
        later = nodes[i + 1 :]
        for name, other in (("left", "right"), ("right", "left")):
            missing = getattr(node, name) is None
            wanted = both and getattr(node, other) is not None
            if missing and (wanted or (shape == "dag" and not both and later and rng.random() < 0.3)):
                setattr(node, name, rng.choice(later) if later else _leaf_like(node))


def _leaf_like(node: Node) -> Node:
    return Node(node.word, node.tag, node.rank, node.op, node.s, node.x)
