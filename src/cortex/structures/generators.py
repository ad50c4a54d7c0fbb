"""Random structures, the same for the same `random.Random(seed)`.

`parse_tree` has the size and the depth of real parse trees, `random_tree` the shape of dependency trees.
"""

from __future__ import annotations

from random import Random

from cortex.structures.tree import BinaryNode, Node

DEFAULT_VOCAB = 20_000

# The Stanford Sentiment Treebank: 11,855 trees of 19.2 +- 9.2 leaves (2 to 56) on 10.9 +- 3.8 levels (at most 30).
_MEAN_LEAVES, _SHAPE, _MAX_LEAVES, _MAX_LEVELS = 19.3, 4.34, 56, 30
# How often a phrase is one word and the rest, and how often that word comes first. Splitting uniformly otherwise,
# this gives the treebank's depth at each size; uniform splits alone are about two levels too shallow.
_ONE_AND_REST, _WORD_FIRST = 0.55, 0.7


def random_word(rng: Random, vocab: int = DEFAULT_VOCAB) -> int:
    """A word id with frequencies near Zipf's law: the k-th word about proportional to 1/k."""
    return int(vocab ** rng.random()) % vocab


def parse_tree(rng: Random, vocab: int = DEFAULT_VOCAB) -> BinaryNode:
    """A random binary parse tree with the Stanford treebank's distribution of sizes and depths."""
    while True:
        leaves = round(rng.gammavariate(_SHAPE, _MEAN_LEAVES / _SHAPE))
        if 2 <= leaves <= _MAX_LEAVES:
            tree, levels = _phrase(rng, leaves, vocab)
            if levels <= _MAX_LEVELS:
                return tree


def _phrase(rng: Random, leaves: int, vocab: int) -> tuple[BinaryNode, int]:
    """A tree of `leaves` leaves and its number of levels. Recursion goes at most `_MAX_LEAVES` deep."""
    if leaves == 1:
        return BinaryNode(None, None, random_word(rng, vocab)), 1
    if rng.random() < _ONE_AND_REST:
        first = 1 if rng.random() < _WORD_FIRST else leaves - 1
    else:
        first = rng.randrange(1, leaves)
    left, left_levels = _phrase(rng, first, vocab)
    right, right_levels = _phrase(rng, leaves - first, vocab)
    return BinaryNode(left, right), 1 + max(left_levels, right_levels)


def perfect_tree(rng: Random, height: int, vocab: int = DEFAULT_VOCAB) -> BinaryNode:
    """A perfect binary tree: 2**height leaves, all at depth `height`."""
    level = [BinaryNode(None, None, random_word(rng, vocab)) for _ in range(2**height)]
    while len(level) > 1:
        level = [BinaryNode(left, right) for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def random_tree(rng: Random, nodes: int, vocab: int = DEFAULT_VOCAB) -> Node:
    """A random recursive tree (each node's parent uniform among the earlier ones), with a word at every node.

    Its arity and depth look like a dependency tree's: about half the nodes are leaves, depth grows as log(nodes).
    """
    children: list[list[int]] = [[] for _ in range(nodes)]
    for i in range(1, nodes):
        children[rng.randrange(i)].append(i)
    made: dict[int, Node] = {}
    for i in reversed(range(nodes)):
        made[i] = Node([made[child] for child in children[i]], random_word(rng, vocab))
    return made[0]
