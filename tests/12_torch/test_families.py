"""Loops that tell children apart, and sorted children: one kind whatever the numbers of them, as the module says."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import cortex

SIZE = 6
NUMBERS = (0, 1, 2, 3, 5, 17, 60)


class Node:
    """A node with fields to tell it by."""

    def __init__(self, rng: random.Random, children: list[Node]) -> None:
        self.word, self.rank, self.place = rng.randrange(9), rng.random(), rng.randrange(4)
        self.tag = rng.choice(["a", "x", "punct"])
        self.note = None if rng.random() < 0.4 else 1.5
        self.children = children


class Phrase(Node):
    """Another class of nodes."""


def star(rng: random.Random, count: int) -> Node:
    """A node above so many leaves."""
    return Node(rng, [rng.choice([Node, Phrase])(rng, []) for _ in range(count)])


class Module(nn.Module):
    """What all of them have."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.a, self.b = nn.Embedding(9, SIZE), nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.cell = nn.GRUCell(SIZE, SIZE)

    def x(self, node: Any) -> Any:
        """Its own vector."""
        return self.emb(torch.tensor(node.word))


class Skips(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            if child.tag == "punct":
                continue
            total = total + self.a(self(child))
        return torch.tanh(total)


class MeanOfSome(Module):
    def forward(self, node: Any) -> Any:
        some = [self(child) for child in node.children if child.tag == "a"]
        return self.x(node) if not some else torch.tanh(self.x(node) + torch.stack(some).mean(0))


class OneOrTheOther(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            h = self(child)
            total = total + (self.a(h) if child.tag == "x" else self.b(h))
        return torch.tanh(total)


class LargestOfSome(Module):
    def forward(self, node: Any) -> Any:
        some = [self.a(self(child)) for child in node.children if child.rank > 0.5]
        return self.x(node) if not some else torch.tanh(self.x(node) + torch.stack(some).max(0).values)


class ByNone(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            total = total + (self.a(self(child)) if child.note is None else self.b(self(child)) * child.note)
        return torch.tanh(total)


class ByClass(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            if isinstance(child, Phrase):
                total = total + self.a(self(child))
        return torch.tanh(total)


class AttentionOverSome(Module):
    def forward(self, node: Any) -> Any:
        some = [self(child) for child in node.children if child.tag != "punct"]
        if not some:
            return self.x(node)
        states = torch.stack(some)
        return torch.tanh(self.x(node) + torch.softmax(states @ self.x(node), 0) @ states)


class FoldOverSome(Module):
    def forward(self, node: Any) -> Any:
        state = self.x(node)
        for child in node.children:
            if child.tag == "punct":
                continue
            state = self.cell(self(child)[None], state[None])[0]
        return state


class SortedFold(Module):
    def forward(self, node: Any) -> Any:
        state = self.x(node)
        for child in sorted(node.children, key=lambda child: child.rank):
            state = self.cell(self(child)[None], state[None])[0]
        return state


class SortedByTwo(Module):
    def forward(self, node: Any) -> Any:
        state = self.x(node)
        for child in sorted(node.children, key=lambda child: (child.place, -child.rank), reverse=True):
            state = self.cell(self(child)[None], state[None])[0]
        return state


class SortedSome(Module):
    def forward(self, node: Any) -> Any:
        state = self.x(node)
        for child in sorted((c for c in node.children if c.tag == "a"), key=lambda child: child.rank):
            state = self.cell(self(child)[None], state[None])[0]
        return state


class TwoMethods(Module):
    """Its nodes are calls."""

    def up(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            if child.tag != "punct":
                total = total + self.a(self.up(child))
        return torch.tanh(total)

    def down(self, node: Any, above: Any) -> Any:
        h = torch.tanh(self.b(above) + self.x(node))
        return h + sum((self.down(child, h) for child in node.children), torch.zeros(SIZE))

    def forward(self, node: Any) -> Any:
        return self.down(node, self.up(node))


FREE = [
    Skips, MeanOfSome, OneOrTheOther, LargestOfSome, ByNone, ByClass, AttentionOverSome, FoldOverSome, SortedFold,
    SortedByTwo, SortedSome,
]  # fmt: skip
"""Modules that have the same kinds whatever the numbers."""


class AfterPunct(Module):
    def forward(self, node: Any) -> Any:
        total, skips = self.x(node), False
        for child in node.children:
            if not skips:
                total = total + self.a(self(child))
            skips = child.tag == "punct"
        return torch.tanh(total)


class FirstIsSpecial(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            is_x = child.tag == "x"
            total = total + (self.a(self(child)) if is_x else self.b(self(child)))
        return torch.tanh(total * 2 if node.children and node.children[0].tag == "x" else total)


class StepByTag(Module):
    def forward(self, node: Any) -> Any:
        state = self.x(node)
        for child in node.children:
            state = (
                self.cell(self(child)[None], state[None])[0]
                if child.tag == "x"
                else torch.tanh(self.b(self(child)) + state)
            )
        return state


class MoreThanTwo(Module):
    def forward(self, node: Any) -> Any:
        total, skipped = self.x(node), 0
        for child in node.children:
            if child.tag == "punct":
                skipped += 1
                continue
            total = total + self.a(self(child))
        return torch.tanh(-total if skipped > 2 else total)


class SomeOfMany(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in node.children:
            if child.tag != "punct":
                total = total + self.a(self(child)) / len(node.children)
        return torch.tanh(total)


class SkipsInOrder(Module):
    def forward(self, node: Any) -> Any:
        state = self.x(node)
        for child in sorted(node.children, key=lambda child: child.rank):
            if child.tag != "punct":
                state = torch.tanh(self.a(state) + self(child))
        return state


class FirstThree(Module):
    def forward(self, node: Any) -> Any:
        total = self.x(node)
        for child in sorted(node.children, key=lambda child: child.rank)[:3]:
            if child.tag == "a":
                total = total + self.a(self(child))
        return torch.tanh(total)


TIED = [TwoMethods, AfterPunct, FirstIsSpecial, StepByTag, MoreThanTwo, SomeOfMany, SkipsInOrder, FirstThree]
"""Modules for which the order of children matters, or single numbers of them do; or they are found to, as yet."""


def differs(fast: Any, module: nn.Module, trees: list[Node]) -> float:
    with torch.no_grad():
        return max(float((torch.as_tensor(fast(tree)) - module(tree)).abs().max()) for tree in trees)


@pytest.mark.parametrize("make", FREE)
def test_numbers_of_children_make_no_kinds(make: type[Module]) -> None:
    torch.manual_seed(0)
    rng, module = random.Random(3), make().eval()
    fast = cortex.compile(module, examples=[star(rng, n) for n in (0, 7, 9)], check=False)
    assert differs(fast, module, [star(rng, n) for n in (*NUMBERS[:5], 3, 2, 1)]) < 1e-5
    kinds = len(fast.program.traced.kinds)
    assert differs(fast, module, [star(rng, n) for n in NUMBERS[4:]]) < 1e-5
    assert len(fast.program.traced.kinds) == kinds


@pytest.mark.parametrize("make", TIED)
def test_what_depends_on_order_or_number_stays_right(make: type[Module]) -> None:
    torch.manual_seed(0)
    rng, module = random.Random(4), make().eval()
    fast = cortex.compile(module, examples=[star(rng, n) for n in (0, 4)], check=False)
    assert differs(fast, module, [star(rng, n) for n in (0, 1, 2, 3, 3, 3, 4)]) < 1e-5


def test_deep_trees_and_shared_nodes() -> None:
    torch.manual_seed(0)
    rng, module = random.Random(5), Skips().eval()
    fast = cortex.compile(module, examples=[star(rng, n) for n in (7, 9)], check=False)
    chain = star(rng, 0)
    for _ in range(30):
        chain = Node(rng, [chain])
    shared = star(rng, 4)
    assert differs(fast, module, [chain, Node(rng, [shared, star(rng, 2), shared]), star(rng, 41)]) < 1e-5


@pytest.mark.parametrize("make", [Skips, SortedByTwo])
def test_saved_models_have_the_lists(make: type[Module], tmp_path: Path) -> None:
    torch.manual_seed(0)
    rng, module = random.Random(6), make().eval()
    fast = cortex.compile(module, examples=[star(rng, n) for n in (0, 7, 9)], check=False)
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")
    assert differs(loaded, module, [star(rng, n) for n in (0, 1, 2, 3, 4)]) < 1e-5


def test_a_list_that_cannot_be_sorted_is_told() -> None:
    rng, module = random.Random(7), SortedFold().eval()
    fast = cortex.compile(module, examples=[star(rng, n) for n in (0, 7)], check=False)
    tree = star(rng, 3)
    tree.children[1].rank = "late"
    with pytest.raises(cortex.StructureError, match=r"sorted by item\.rank"):
        fast(tree)
