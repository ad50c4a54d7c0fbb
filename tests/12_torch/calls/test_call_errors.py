"""What a module may not do with calls and nodes: each message names the line and a remedy."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nodes
import pytest
import torch

import cortex

HEADER = """\
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 4)
        self.join = nn.Linear(8, 4)
        self.drop = nn.Dropout(0.5)
        self.seen = []

"""

BODIES = {
    "itself": """
def forward(self, node):
    if node.left is None:
        return self.emb(torch.tensor(node.word))
    return self(node.left) + self(node)
""",
    "local_recursion": """
def forward(self, node):
    class Walk:
        def go(_, n):
            if n.left is None:
                return self.emb(torch.tensor(n.word))
            return Walk().go(n.left) + Walk().go(n.right)
    return Walk().go(node)
""",
    "other_shapes": """
def forward(self, node):
    if node.left is None:
        return self.emb(torch.tensor([node.word]))
    return self.join(torch.cat([self(node.left), self(node.right)], -1))[0]
""",
    "other_forms": """
def forward(self, node):
    if node.left is None:
        return self.emb(torch.tensor(node.word))
    return self(node.left), self(node.right)
""",
    "truth_or_floats": """
def forward(self, node):
    if node.left is None:
        return torch.zeros(4)
    return self(node.left) + self(node.right) > 0
""",
    "large_integer": """
def forward(self, node):
    if node.left is None:
        return self.emb(torch.tensor(node.word)), torch.tensor(20_000_001)
    return self(node.left)
""",
    "node_result": """
def forward(self, node):
    return self.emb(torch.tensor(0)), node
""",
    "two_nodes": """
def match(self, a, b):
    if a.left is None or b.left is None:
        return torch.zeros(4)
    return torch.tanh(self.match(a.left, b.left) + 1)
def forward(self, node):
    return self.match(node, node)
""",
    "path": """
def encode(self, node, path):
    if node.left is None:
        return self.emb(torch.tensor(node.word)) * len(path)
    return self.encode(node.left, (*path, 0)) + self.encode(node.right, (*path, 1))
def forward(self, node):
    return self.encode(node, ())
""",
    "child_attribute": """
def forward(self, node):
    if node.left is not None:
        node.left.above = torch.ones(4)
        return self(node.left) + self(node.right)
    return self.emb(torch.tensor(node.word))
""",
    "siblings": """
def encode(self, node, before):
    if node.left is None:
        return torch.tanh(before + self.emb(torch.tensor(node.word)))
    return self.encode(node.right, self.encode(node.left, before))
def forward(self, node):
    return self.encode(node, torch.zeros(4))
""",
    "stored_by_kind": """
def left(self, node):
    node.h = self.join.bias + 1
    self.down(node)
def right(self, node):
    node.h = torch.tanh(self.join.bias)
    self.down(node)
def down(self, node):
    if node.left is not None:
        if node.left.left is None:
            self.left(node.left)
            self.left(node.right)
        else:
            self.right(node.left)
            self.right(node.right)
def total(self, node):
    return node.h if node.left is None else node.h + self.total(node.left) + self.total(node.right)
def forward(self, node):
    self.left(node)
    return self.total(node)
""",
    "missing_attribute": """
def forward(self, node):
    if node.left is None:
        return self.emb(torch.tensor(node.label))
    return self(node.left) + self(node.right)
""",
}

TAKEN = {
    "depth": """
def encode(self, node, depth):
    if node.left is None:
        return self.emb(torch.tensor(node.word)) * depth
    return self.encode(node.left, depth + 1) + self.encode(node.right, depth + 1)
def forward(self, node):
    return self.encode(node, 0)
""",
    "appended": """
def encode(self, node, found):
    h = self.emb(torch.tensor(0 if node.word is None else node.word))
    if node.left is not None:
        h = h + self.encode(node.left, found) + self.encode(node.right, found)
    found.append(h)
    return h
def forward(self, node):
    found = []
    return self.encode(node, found) + sum(found)
""",
}
"""What may be done, though it looks like what is refused."""


def define(name: str) -> Any:
    """A module as if it stood in a file."""
    source = HEADER + "".join(f"    {line}\n" for line in (BODIES | TAKEN)[name].strip().split("\n"))
    file = f"encoder_{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "encoder"}
    exec(compile(source, file, "exec"), names)
    return names["Encoder"]()


def pairs(depth: int = 3) -> nodes.Pair:
    return nodes.Pair(3) if depth == 0 else nodes.Pair(None, pairs(depth - 1), pairs(depth - 1))


def comb(length: int) -> nodes.Pair:
    """A tree that is deep on the left."""
    tree = pairs()
    for _ in range(length):
        tree = nodes.Pair(None, tree, nodes.Pair(1))
    return tree


@pytest.mark.parametrize("name", BODIES)
def test_refused(name: str, golden: Callable[[str, str], None]) -> None:
    tree = comb(70) if name == "path" else pairs()
    with pytest.raises(cortex.CortexError) as raised:
        cortex.compile(define(name).eval(), examples=[tree])
    golden(f"errors/torch_calls/{name}", f"{type(raised.value).__name__}: {raised.value}")


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    module = define(name).eval()
    with torch.no_grad():
        fast = cortex.compile(module, examples=[pairs()], check=False)
        for tree in (comb(70), pairs(1), nodes.Pair(5)):
            torch.testing.assert_close(fast(tree), module(tree))


@dataclass
class Valued:
    """Nodes that are equal where their fields are."""

    word: int
    left: Any = None
    right: Any = None


class ComparesNodes(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = torch.nn.Embedding(12, 4)

    def forward(self, node):
        if node.left == None:  # noqa: E711 - as people write it
            return self.emb(torch.tensor(node.word))
        return self(node.left) + self(node.right) * (2 if node.left == 3 else 1)


def test_nodes_compared_with_constants_by_their_own_equality_are_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(ComparesNodes().eval(), examples=[Valued(1, Valued(2), Valued(2))])
    golden("errors/torch_calls/compared", str(raised.value).partition("\n")[0])


def test_training_is_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(define("itself"), examples=[pairs()])
    golden("errors/torch_calls/training", f"{type(raised.value).__name__}: {raised.value}")


def test_no_structure_is_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(define("itself").eval(), examples=[torch.zeros(3)])
    golden("errors/torch_calls/no_structure", f"{type(raised.value).__name__}: {raised.value}")
