"""Random structures for the modules of this folder."""

from __future__ import annotations

import os
import random

import torch
from language import Phrase, Tree, V
from repository_programs import AstNode, BinOp, Cell, Layout, Num, Var, Vertex
from shapes_and_plans import Binary, D, Named, Operator, Part, Predicate

LONG = os.environ.get("CORTEX_FUZZ") == "long"
MOST = 3 if LONG else 2
"""Children of a node; some modules have a kind for each number of them."""


def similar_trees():
    """Two trees, each with its words."""
    found = []
    for _ in range(2):
        count = random.randint(1, 9)
        made = [Tree() for _ in range(count)]
        order = random.sample(range(count), count)
        for i, tree in enumerate(made):
            tree.idx = order[i]
            if i:
                random.choice(made[:i]).add_child(tree)
        found += [made[0], torch.randint(0, V, (count,))]
    return tuple(found)


def phrase(leaves=None):
    leaves = random.randint(1, 7) if leaves is None else leaves
    node = Phrase(random.randrange(5))
    if leaves == 1:
        node.word, node.isLeaf = random.randrange(V), True
        return node
    left = random.randint(1, leaves - 1)
    node.left, node.right = phrase(left), phrase(leaves - left)
    node.left.parent = node.right.parent = node
    return node


def two_phrases():
    return phrase(), phrase()


class Word:
    """A word with its dependents."""

    def __init__(self, word, children):
        self.word = word
        self.children = children


def dependency(depth=3):
    count = random.randint(0, MOST) if depth else 0
    return Word(random.randrange(V), [dependency(depth - 1) for _ in range(count)])


def ast_node(depth=3):
    count = random.randint(0, MOST) if depth else 0
    return AstNode(random.randrange(V), [ast_node(depth - 1) for _ in range(count)])


def query(depth=3):
    """A plan as EXPLAIN prints it."""
    scans, inner = ["Seq Scan", "Index Scan"], ["Hash Join", "Nested Loop", "Sort", "Hash"]
    op = random.choice(inner if depth and random.random() < 0.7 else scans)
    made = {
        "Node Type": op,
        "Plan Rows": random.randrange(1, 10**6),
        "Plan Width": random.randrange(4, 200),
        "Total Cost": random.uniform(1, 1e5),
    }
    if op not in scans:
        made["Plans"] = [query(depth - 1) for _ in range(2 if op in inner[:2] else 1)]
    return made


def layout(depth=3):
    if not depth or random.random() < 0.25:
        return Layout("find", word=random.randrange(V))
    if random.random() < 0.5:
        return Layout("transform", [layout(depth - 1)])
    return Layout("and", [layout(depth - 1), layout(depth - 1)])


def graph():
    made = []
    for _ in range(random.randint(1, 9)):
        made.append(Vertex(random.randrange(4), random.sample(made, min(len(made), random.randint(0, 3)))))
    return made[-1]


def expression(depth=4):
    if not depth or random.random() < 0.25:
        return Num(random.uniform(-2, 2)) if random.random() < 0.5 else Var(random.choice("xyz"))
    return BinOp(random.choice(["+", "-", "*", "max"]), expression(depth - 1), expression(depth - 1))


def linked():
    made = None
    for _ in range(random.randint(1, 12)):
        made = Cell(random.randrange(V), made)
    return made


def shape(depth=3):
    chance = random.random()
    if not depth or chance < 0.3:
        return Part(Part.BOX, box=torch.randn(1, D))
    if chance < 0.7:
        return Part(Part.SIDE_BY_SIDE, left=shape(depth - 1), right=shape(depth - 1))
    return Part(Part.REPEATED, left=shape(depth - 1), symmetry=torch.randn(1, 4))


def numbers(count):
    return [random.random() for _ in range(count)]


def predicate(depth=MOST - 1):
    if not depth or random.random() < 0.4:
        return Predicate("CMP", numbers(4))
    return Predicate(random.choice(["AND", "OR"]), None, [predicate(depth - 1), predicate(depth - 1)])


def operator(depth=MOST - 1):
    below = [operator(depth - 1) for _ in range(random.randint(0, MOST))] if depth else []
    return Operator(numbers(3), predicate() if random.random() < 0.6 else None, below)


def binary(depth=3):
    if not depth or random.random() < 0.3:
        return Binary(random.randrange(V))
    return Binary(random.randrange(V), binary(depth - 1), binary(depth - 1))


def two_children(depth=3):
    count = random.randint(0, 2) if depth else 0
    return AstNode(random.randrange(V), [two_children(depth - 1) for _ in range(count)])


def named(depth=3):
    if not depth or random.random() < 0.3:
        return (Named(random.randrange(V), None, None),)
    return (Named(random.randrange(V), *named(depth - 1), *named(depth - 1)),)
