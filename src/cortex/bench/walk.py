"""How the hand-batched peers read a batch of objects: as few Python steps per node as we could find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

# A node met while walking is coded level * 2**20 + index in its level; one vectorized step decodes all of them.
SHIFT = 20
MASK = (1 << SHIFT) - 1


def by_level(batch: Sequence[Any]) -> tuple[list[torch.Tensor], int]:
    """Number the nodes of binary trees level by level, leaves first.

    Returns the parts [words of the leaves, children of level 1, ..., children of the top level, roots] and the
    number of nodes. Children are given as left, right, left, right, ... by number.
    """
    words: list[int] = []
    levels: list[list[int]] = []

    def visit(node: Any) -> int:
        left = node.left
        if left is None:
            words.append(node.word)
            return len(words) - 1
        a = visit(left)
        b = visit(node.right)
        height = (a if a > b else b) >> SHIFT
        if len(levels) == height:
            levels.append([])
        level = levels[height]
        level.append(a)
        level.append(b)
        return ((height + 1) << SHIFT) + (len(level) >> 1) - 1

    roots = [visit(tree) for tree in batch]
    leaves = len(words)
    sizes = [leaves]
    offsets = [0, leaves]
    flat = words
    for level in levels:
        offsets.append(offsets[-1] + (len(level) >> 1))
        sizes.append(len(level))
        flat += level
    flat += roots
    sizes.append(len(roots))
    numbers = np.array(flat)
    coded = numbers[leaves:]
    numbers[leaves:] = np.array(offsets)[coded >> SHIFT] + (coded & MASK)
    return list(torch.split_with_sizes(torch.from_numpy(numbers), sizes)), offsets[-1]


def sequence_words(last: Any) -> list[int]:
    """The words of a linked sequence from its first element to `last`."""
    words = []
    node = last
    while node is not None:
        words.append(node.word)
        node = node.prev
    words.reverse()
    return words


def grid_words(last: Any) -> list[int]:
    """The words of a grid, row by row, given its last node."""
    words = []
    row = last
    while row is not None:
        node = row
        while node is not None:
            words.append(node.word)
            node = node.left
        row = row.up
    words.reverse()
    return words
