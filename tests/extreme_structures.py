"""Structures of the extreme shapes, and circuits in another form, for tests."""

from __future__ import annotations

from random import Random

import numpy as np

from cortex import Forest
from cortex.structures.aiger import Circuit
from cortex.structures.generators import DEFAULT_VOCAB, random_word
from cortex.structures.tree import Node


def chain(rng: Random, length: int, vocab: int = DEFAULT_VOCAB) -> Node:
    """The top of a chain of `length` nodes, each but the last with one child; every node has a word."""
    top = Node((), random_word(rng, vocab))
    for _ in range(length - 1):
        top = Node((top,), random_word(rng, vocab))
    return top


def star(rng: Random, leaves: int, vocab: int = DEFAULT_VOCAB) -> Node:
    """One node over `leaves` leaves; every node has a word."""
    return Node([Node((), random_word(rng, vocab)) for _ in range(leaves)], random_word(rng, vocab))


def random_dag(rng: Random, nodes: int, reuse: float = 0.3, vocab: int = DEFAULT_VOCAB) -> Node:
    """A random tree with extra edges: each node but the root gets a second parent with probability `reuse`."""
    children: list[list[int]] = [[] for _ in range(nodes)]
    for i in range(1, nodes):
        parent = rng.randrange(i)
        children[parent].append(i)
        other = rng.randrange(i)
        if other != parent and rng.random() < reuse:
            children[other].append(i)
    made: dict[int, Node] = {}
    for i in reversed(range(nodes)):
        made[i] = Node([made[child] for child in children[i]], random_word(rng, vocab))
    return made[0]


def with_list_of_children(circuit: Circuit) -> Forest:
    """The graph with one list relation `children` (left, right) instead of the two slots."""
    gates = np.flatnonzero(circuit.left >= 0)
    pointer = np.zeros(len(circuit.left) + 1, dtype=np.int64)
    pointer[gates + 1] = 2
    index = np.stack([circuit.left[gates], circuit.right[gates]], axis=1).reshape(-1)
    return Forest.from_children(np.cumsum(pointer), index, fields={"word": circuit.word}, roots=circuit.outputs)
