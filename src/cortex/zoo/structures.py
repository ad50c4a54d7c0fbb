"""The structures the zoo's models are meant for, as fresh Python objects."""

from __future__ import annotations

from random import Random

from cortex.structures import generators
from cortex.structures.grid import grid
from cortex.structures.sequences import sequence
from cortex.structures.tree import BinaryNode, Link, Node, with_children

VOCAB = generators.DEFAULT_VOCAB


def parse_trees(rng: Random, count: int, vocab: int = VOCAB) -> list[BinaryNode]:
    """Binary parse trees with the Stanford treebank's sizes and depths: `left`, `right`, words at the leaves."""
    return [generators.parse_tree(rng, vocab) for _ in range(count)]


def parse_trees_with_children(rng: Random, count: int, vocab: int = VOCAB) -> list[Node]:
    """The same trees for models over `children`."""
    return [with_children(generators.parse_tree(rng, vocab)) for _ in range(count)]


def perfect_trees(rng: Random, count: int, vocab: int = VOCAB) -> list[BinaryNode]:
    """Perfect binary trees of height 7: 255 nodes, 128 leaves."""
    return [generators.perfect_tree(rng, 7, vocab) for _ in range(count)]


def dependency_trees(rng: Random, count: int, vocab: int = VOCAB) -> list[Node]:
    """Trees of any arity with a word at every node, 4 to 40 nodes."""
    return [generators.random_tree(rng, rng.randint(4, 40), vocab) for _ in range(count)]


def grids(rng: Random, count: int, vocab: int = VOCAB) -> list[Node]:
    """10 x 10 grids, each cell above its left and its upper neighbour: 19 wavefronts."""
    return [grid(10, 10, [generators.random_word(rng, vocab) for _ in range(100)]) for _ in range(count)]


def sequences(rng: Random, count: int, vocab: int = VOCAB) -> list[Link]:
    """Sequences of 100 words."""
    return [sequence([generators.random_word(rng, vocab) for _ in range(100)]) for _ in range(count)]
