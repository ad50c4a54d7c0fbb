"""Structures of every shape for every model of the zoo: real trees where the data is there, generators elsewhere."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any, Literal

import extreme_structures

from cortex.options import Options
from cortex.structures import generators
from cortex.structures.conllu import read_conllu
from cortex.structures.grid import grid
from cortex.structures.ptb import read_ptb
from cortex.structures.sequences import sequence
from cortex.structures.tree import BinaryNode, Node, below, postorder, with_children
from cortex.structures.vocabulary import hashed

VOCAB = 50
DATA = Options.from_environment().data.resolve()
SHAPES = ("stanford", "conllu", "grids", "chains", "stars", "single", "empty")
Relation = Literal["slots", "children", "previous"]

_SLOTS = ("tree_fc", "tree_rnn", "nary_tree_lstm", "mv_rnn", "rntn")


def relation(name: str) -> Relation:
    """How the structures of a zoo model lead to children."""
    return "slots" if name in _SLOTS else "previous" if name in ("lstm", "gru") else "children"


@cache
def stanford(part: str = "dev", vocab: int = VOCAB) -> list[BinaryNode]:
    """The trees of a part of the Stanford Sentiment Treebank; as many generated ones where it is not there."""
    path = DATA / "sst" / f"{part}.txt"
    if path.exists():
        return read_ptb(path, words=hashed(vocab), binary=True)
    rng = Random(part)
    return [generators.parse_tree(rng, vocab) for _ in range({"train": 8544, "dev": 1101, "test": 2210}[part])]


@cache
def dependency_trees(graph: Literal["basic", "enhanced"] = "basic") -> list[Any]:
    """Trees, or graphs with shared nodes, of the English Web Treebank; generated ones where it is not there."""
    path = DATA / "ud" / "en_ewt-ud-dev.conllu"
    if path.exists():
        return read_conllu(path, words=hashed(VOCAB), graph=graph, cycles="skip")
    rng = Random(graph)
    reuse = 0.0 if graph == "basic" else 0.2
    return [extreme_structures.random_dag(rng, rng.randint(1, 40), reuse, VOCAB) for _ in range(200)]


def batch(name: str, shape: str, count: int = 3) -> list[Any]:
    """A batch of `count` structures of one of `SHAPES` for the zoo model `name`."""
    rng = Random(f"{name} {shape}")
    match shape:
        case "stanford":
            found = [_fitted(name, tree, rng) for tree in stanford()[:count]]
        case "conllu":
            trees = [*dependency_trees()[:count], *dependency_trees("enhanced")[:count]]
            found = [_fitted(name, tree, rng) for tree in trees]
        case "grids":
            found = [_fitted(name, _grid(rng, 3 + i, 4), rng) for i in range(count)]
        case "chains":
            found = [_fitted(name, extreme_structures.chain(rng, 5 * i + 2, VOCAB), rng) for i in range(count)]
        case "stars":
            found = [_fitted(name, extreme_structures.star(rng, 9 * i + 2, VOCAB), rng) for i in range(count)]
        case "single":
            found = [_fitted(name, Node((), rng.randrange(VOCAB)), rng) for _ in range(count)]
        case _:
            found = []
    return found


def _grid(rng: Random, rows: int, columns: int) -> Node:
    return grid(rows, columns, [rng.randrange(VOCAB) for _ in range(rows * columns)])


def _fitted(name: str, root: Any, rng: Random) -> Any:
    """The same structure as objects that the model can take: every node with a word, in its kind of relation."""
    match relation(name):
        case "children":
            tree = with_children(root) if isinstance(root, BinaryNode) else root
            for node in postorder(tree):
                node.word = node.word if node.word >= 0 else rng.randrange(VOCAB)
            return tree
        case "slots":
            return _binary(root, rng)
        case "previous":
            return sequence([max(node.word, 0) for node in postorder(root)])


def _binary(root: Any, rng: Random) -> BinaryNode:
    """A binary tree with the root's shape: one child gets a leaf beside it, many are paired off from the left."""
    made: dict[int, BinaryNode] = {}
    for node in postorder(root):
        children = [made[id(child)] for child in below(node)]
        if len(children) == 1:
            children.append(BinaryNode(None, None, rng.randrange(VOCAB)))
        while len(children) > 2:
            children[:2] = [BinaryNode(children[0], children[1])]
        left, right = children or (None, None)
        made[id(node)] = BinaryNode(left, right, node.word if not children and node.word >= 0 else rng.randrange(VOCAB))
    return made[id(root)]
