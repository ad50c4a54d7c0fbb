"""The requests of the recursive suite: which shapes, from where, and objects built from them anew for each call.

Shapes are kept as plain tuples; `fresh` turns a batch of them into objects as a user would hold them, so that no
system can recognize an object it has seen. Parse trees come from the Stanford Sentiment Treebank where it is found
and from a generator matched to its sizes and depths elsewhere; `Workload.source` says which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from cortex.structures.generators import parse_tree, random_word
from cortex.structures.ptb import read_ptb
from cortex.structures.tree import BinaryNode, below, postorder

TREES = 200
OTHERS = 40
SEQUENCE = 100
SIDE = 10
HEIGHT = 7

# A shape lists nodes, each after the nodes below it: (number of a node below, number of another, word).
Shape = tuple[tuple[int, int, int], ...]
NONE = -1


class Tree:
    """A node of a binary tree, told both ways: `left` and `right` (None at a leaf), and `children`."""

    __slots__ = ("children", "left", "right", "word")

    def __init__(self, left: Tree | None, right: Tree | None, word: int) -> None:
        """Both children or neither."""
        self.left = left
        self.right = right
        self.children = () if left is None else (left, right)
        self.word = word


class Link:
    """An element of a sequence; the last one stands for the sequence."""

    __slots__ = ("prev", "word")

    def __init__(self, prev: Link | None, _: None, word: int) -> None:
        """`prev` is None in the first element; a shape has no second node below."""
        self.prev = prev
        self.word = word


class Cell:
    """A cell of a grid with edges from its left and upper neighbours; the last one stands for the grid."""

    __slots__ = ("children", "left", "up", "word")

    def __init__(self, up: Cell | None, left: Cell | None, word: int) -> None:
        """A neighbour outside the grid is None."""
        self.up = up
        self.left = left
        self.children = tuple(cell for cell in (left, up) if cell is not None)
        self.word = word


@dataclass(frozen=True)
class Workload:
    """Shapes for one model, the class their nodes get, and where the shapes come from."""

    shapes: tuple[Shape, ...]
    node: Callable[[Any, Any, int], Any]
    source: str

    def first(self, count: int) -> Workload:
        """The first so many shapes."""
        return replace(self, shapes=self.shapes[:count])

    def fresh(self, start: int, count: int) -> list[Any]:
        """New objects for `count` shapes from number `start` on."""
        return [self._build(shape) for shape in self.shapes[start : start + count]]

    def _build(self, shape: Shape) -> Any:
        make = self.node
        nodes: list[Any] = []
        for a, b, word in shape:
            nodes.append(make(None if a < 0 else nodes[a], None if b < 0 else nodes[b], word))
        return nodes[-1]

    def levels(self, start: int, count: int) -> list[int]:
        """How many nodes of the same shapes have height 0, 1, ..."""
        counts: list[int] = []
        for shape in self.shapes[start : start + count]:
            heights: list[int] = []
            for a, b, _ in shape:
                height = max(-1 if a < 0 else heights[a], -1 if b < 0 else heights[b]) + 1
                heights.append(height)
                if height == len(counts):
                    counts.append(0)
                counts[height] += 1
        return counts


def workload(model: str, words: int, data: Path | None) -> Workload:
    """The requests for a model of the suite, with that many words; `data` is a folder that may hold `sst/test.txt`."""
    rng = Random(0)
    match model:
        case "tree_fc":
            shapes = [_perfect(rng, words) for _ in range(OTHERS)]
            return Workload(tuple(shapes), Tree, f"perfect binary trees of height {HEIGHT}")
        case "lstm" | "gru":
            shapes = [_sequence(rng, words) for _ in range(OTHERS)]
            return Workload(tuple(shapes), Link, f"sequences of length {SEQUENCE}")
        case "dag_rnn":
            shapes = [_grid(rng, words) for _ in range(OTHERS)]
            return Workload(tuple(shapes), Cell, f"grids of {SIDE} x {SIDE}")
        case _:
            shapes, source = _parse_trees(rng, words, data)
            return Workload(tuple(shapes), Tree, source)


def _parse_trees(rng: Random, words: int, data: Path | None) -> tuple[list[Shape], str]:
    file = None if data is None else data / "sst" / "test.txt"
    if file is not None and file.is_file():
        trees = rng.sample(read_ptb(file, binary=True), TREES)
        source = "Stanford Sentiment Treebank"
    else:
        trees = [parse_tree(rng) for _ in range(TREES)]
        source = "generated parse trees"
    return [_shape_of(tree, words) for tree in trees], source


def _shape_of(tree: BinaryNode, words: int) -> Shape:
    numbers: dict[int, int] = {}
    shape: list[tuple[int, int, int]] = []
    for node in postorder(tree):
        a, b = [numbers[id(child)] for child in below(node)] or (NONE, NONE)
        numbers[id(node)] = len(shape)
        shape.append((a, b, node.word % words))
    return tuple(shape)


def _perfect(rng: Random, words: int) -> Shape:
    leaves = 1 << HEIGHT
    shape = [(NONE, NONE, random_word(rng, words)) for _ in range(leaves)]
    shape += [(2 * i, 2 * i + 1, NONE) for i in range(leaves - 1)]
    return tuple(shape)


def _sequence(rng: Random, words: int) -> Shape:
    return tuple((i - 1, NONE, random_word(rng, words)) for i in range(SEQUENCE))


def _grid(rng: Random, words: int) -> Shape:
    def neighbours(i: int) -> tuple[int, int]:
        return (i - SIDE if i >= SIDE else NONE, i - 1 if i % SIDE else NONE)

    return tuple((*neighbours(i), random_word(rng, words)) for i in range(SIDE * SIDE))
