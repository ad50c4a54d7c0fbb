"""Node classes as people write them, and random structures of them."""

from __future__ import annotations

import os
import random
from enum import Enum
from typing import Any

WORDS = 12
LONG = os.environ.get("CORTEX_FUZZ") == "long"


class Node:
    """A word and a list of children."""

    def __init__(self, word: int, children: Any = ()) -> None:
        self.word = word
        self.children = list(children)


class Pair:
    """Two children, or none and a word; with a method."""

    def __init__(self, word: Any = None, left: Any = None, right: Any = None) -> None:
        self.word = word
        self.left = left
        self.right = right

    def is_leaf(self) -> bool:
        return self.left is None

    def nodes(self) -> list[Any]:
        """All nodes below, this one first."""
        return [self] if self.left is None else [self, *self.left.nodes(), *self.right.nodes()]


class Leaf:
    """One of two classes of nodes."""

    def __init__(self, token: int) -> None:
        self.token = token


class Inner:
    """The other one."""

    def __init__(self, op: str, kids: tuple[Any, ...]) -> None:
        self.op = op
        self.kids = kids


class Op(Enum):
    WORD = 1
    SUM = 2
    PRODUCT = 3


class Expression:
    """Children behind a property, a kind that is an enum, and a visitor."""

    def __init__(self, op: Op, word: int = 0, left: Any = None, right: Any = None) -> None:
        self.op = op
        self.word = word
        self.left = left
        self.right = right

    @property
    def kids(self) -> list[Any]:
        return [child for child in (self.left, self.right) if child is not None]

    def accept(self, visitor: Any) -> Any:
        return getattr(visitor, f"visit_{self.op.name.lower()}")(self)


def word() -> int:
    return random.randrange(WORDS)


def nary(size: int = 8, most: int = 2) -> Node:
    if size <= 1:
        return Node(word())
    parts = random.randint(1, most)
    return Node(word(), [nary((size - 1) // parts, most) for _ in range(parts)])


def _split(size: int, make: Any) -> tuple[Any, Any]:
    left = random.randint(1, size - 1)
    return make(left), make(size - left)


def pairs(size: int = 7) -> Pair:
    return Pair(word()) if size <= 1 else Pair(None, *_split(size, pairs))


def typed(size: int = 6) -> Any:
    return Leaf(word()) if size <= 1 else Inner(random.choice(["add", "mul"]), _split(size, typed))


def expression(size: int = 5 if LONG else 4) -> Expression:
    if size <= 1:
        return Expression(Op.WORD, word())
    return Expression(random.choice([Op.SUM, Op.PRODUCT]), 0, *_split(size, expression))


def dag(size: int = 7) -> Node:
    """Nodes that share children."""
    made: list[Node] = []
    for _ in range(size):
        made.append(Node(word(), random.sample(made, min(len(made), random.randint(0, 2)))))
    return Node(word(), made[-2:])


def nested(size: int = 5) -> Any:
    """Tuples in tuples."""
    return word() if size <= 1 else _split(size, nested)


def plan(size: int = 5) -> dict[str, Any]:
    """Dictionaries, as JSON gives them."""
    return {"id": word()} if size <= 1 else {"id": word(), "Plans": list(_split(size, plan))}


def numbered(tree: Node) -> tuple[Node, int]:
    """The tree, its nodes numbered, and how many there are."""
    todo, count = [tree], 0
    while todo:
        node: Any = todo.pop()
        node.idx = count
        count += 1
        todo += node.children
    return tree, count
