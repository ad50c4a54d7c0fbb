"""Changes in place are seen by everyone who holds the tensor, as in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from judged import judge
from torch import nn

import cortex


class Node:
    def __init__(self, x: float, left: Any = None, right: Any = None) -> None:
        self.x, self.left, self.right = x, left, right
        self.vec = torch.tensor([x, 2.0])
        self.kids = [kid for kid in (left, right) if kid is not None]


STRUCTURES = (
    lambda: Node(1, Node(2, Node(4), Node(5)), Node(3)),
    lambda: Node(1, Node(2), Node(3, Node(4, Node(6), Node(7, Node(1), Node(2))), Node(5))),
    lambda: Node(2),
    lambda: Node(-1, Node(2), Node(0.5)),
)


class Stores(nn.Module):
    """Stores a state on each node, and combines those of the children."""

    def forward(self, node: Any) -> Any:
        self.go(node)
        return node.h

    def leaf(self, node: Any) -> Any:
        return torch.tensor([node.x, 1.0]) / 5

    def go(self, node: Any) -> Any:
        node.h = self.leaf(node) if node.left is None else self.combine(node, self.go(node.left), self.go(node.right))
        return node.h


class Named(Stores):
    """The program of the issue."""

    def combine(self, node: Any, left: Any, right: Any) -> Any:
        t = node.left.h
        t += node.right.h
        return torch.tanh(t + node.left.h)


class Result(Stores):
    """The result of a call is what is stored."""

    def combine(self, node: Any, left: Any, right: Any) -> Any:
        left[:1].mul_(2)
        return torch.tanh(node.left.h + right)


class Both(Stores):
    def combine(self, node: Any, left: Any, right: Any) -> Any:
        node.left.h.add_(right)
        right *= left
        return torch.tanh(node.left.h - 2 * node.right.h)


class Element(Stores):
    def combine(self, node: Any, left: Any, right: Any) -> Any:
        view = node.left.h[0]
        view += 2
        node.right.h[1] = left[0]
        return torch.tanh(left - right)


class Kept(Stores):
    """The state of the child is the state of its parent."""

    def combine(self, node: Any, left: Any, right: Any) -> Any:
        left += right
        left.tanh_()
        return left


class OwnState(Stores):
    def go(self, node: Any) -> Any:
        node.h = self.leaf(node)
        if node.left is not None:
            node.h += self.go(node.left)
            self.go(node.right)
            node.h *= node.right.h
        return node.h


class OwnStateLater(Stores):
    """A state that is stored, and changed afterwards by the local name."""

    def go(self, node: Any) -> Any:
        h = self.leaf(node)
        node.h = h
        for kid in node.kids:
            h += self.go(kid)
        h.tanh_()
        return node.h


class Shape(Stores):
    def combine(self, node: Any, left: Any, right: Any) -> Any:
        node.left.h.unsqueeze_(0)
        return torch.tanh(node.left.h[0] + node.right.h)


class TwoStates(nn.Module):
    """One tensor under two names."""

    def forward(self, node: Any) -> Any:
        self.go(node)
        return node.h, node.c

    def go(self, node: Any) -> None:
        node.h = node.c = torch.tensor([node.x, 1.0]) / 5
        for kid in node.kids:
            self.go(kid)
            kid.c += 1
            node.h = node.h + kid.h


class TwiceInAResult(nn.Module):
    def forward(self, node: Any) -> Any:
        return self.go(node)[0]

    def go(self, node: Any) -> Any:
        if node.left is None:
            h = torch.tensor([node.x, 1.0]) / 5
            return h, h
        (a, c), (b, d) = self.go(node.left), self.go(node.right)
        c += d
        return torch.tanh(a + b), torch.tanh(c)


class ListOfStates(nn.Module):
    def forward(self, node: Any) -> Any:
        self.go(node)
        return node.hs[0]

    def go(self, node: Any) -> None:
        if node.left is None:
            node.hs = [torch.tensor([node.x, 1.0]) / 5]
            return
        self.go(node.left)
        self.go(node.right)
        node.hs = node.left.hs
        node.hs[0] = torch.tanh(node.hs[0] + node.right.hs[0])


class StatesOfAll(nn.Module):
    """Every state is read again at the end."""

    def forward(self, node: Any) -> Any:
        self.up(node)
        return self.down(node)

    def up(self, node: Any) -> Any:
        node.h = torch.tensor([node.x, 1.0]) / 5
        for kid in node.kids:
            t = self.up(kid)
            t *= 2
            node.h = node.h + torch.tanh(t)
        return node.h

    def down(self, node: Any) -> Any:
        h = node.h
        for kid in node.kids:
            h = h + torch.tanh(self.down(kid))
        return h


class Fresh(nn.Module):
    def forward(self, node: Any) -> Any:
        if node.left is None:
            return torch.tensor([node.x, 1.0]) / 5
        h = self(node.left)
        h += self(node.right)
        again = self(node.left)
        again[0] = 3
        return torch.tanh(h + again)


class PassedDown(nn.Module):
    """The caller changes what it has passed, after the call."""

    def forward(self, node: Any) -> Any:
        return self.go(node, torch.zeros(2))

    def go(self, node: Any, above: Any) -> Any:
        h = torch.tensor([node.x, 1.0]) / 5 + above
        total = torch.zeros(2)
        for kid in node.kids:
            total += self.go(kid, h)
            h += 1
        return torch.tanh(h) + total / 2


class Accumulator(nn.Module):
    """A tensor that is passed down and changed by every call."""

    def forward(self, node: Any) -> Any:
        total = torch.zeros(2)
        self.go(node, total)
        return total

    def go(self, node: Any, total: Any) -> None:
        total += torch.tensor([node.x, 1.0]) / 5
        for kid in node.kids:
            self.go(kid, total)


class FieldInPlace(nn.Module):
    """The node's own tensor is changed, and read again in the same call."""

    def forward(self, node: Any) -> Any:
        f = node.vec
        f *= 2
        h = f + node.vec
        return h if node.left is None else torch.tanh(h + self(node.left) + self(node.right))


class ReturnedParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(2))

    def forward(self, node: Any) -> Any:
        if node.left is None:
            return self.p * 1
        h = self(node.left)
        h += 1
        return torch.tanh(h * self(node.right) / 10)


class KeptArgument(nn.Module):
    def forward(self, node: Any) -> Any:
        return self.go(node, torch.zeros(2))

    def go(self, node: Any, above: Any) -> Any:
        if node.left is None:
            return above
        x = above + torch.tensor([node.x, 1.0]) / 5
        a, b = self.go(node.left, x), self.go(node.right, x)
        x += 1
        return torch.tanh(a + b)


class Aliases(nn.Module):
    """Views, detached tensors and reshaped ones are the same memory."""

    def forward(self, node: Any) -> Any:
        h = torch.tensor([node.x, 1.0]) / 5
        flat, same, row = h.view(-1), h.detach(), h.reshape(1, 2)
        for kid in node.kids:
            other = self(kid)
            other.detach()[0] += 1
            flat += other
        row[0, 1] += 1
        return torch.tanh(same)


class ByWayOfKids(Stores):
    """Each child in a loop."""

    def go(self, node: Any) -> Any:
        h = self.leaf(node)
        for kid in node.kids:
            t = self.go(kid)
            t *= 2
            kid.h[0] -= 1
            h = torch.tanh(h + kid.h + t)
        node.h = h
        return h


class ForwardItself(nn.Module):
    """The module is recursive itself, and stores."""

    def forward(self, node: Any) -> Any:
        h = torch.tensor([node.x, 1.0]) / 5
        for kid in node.kids:
            self(kid)
            kid.h += 1
            h = h + torch.tanh(kid.h)
        node.h = h
        return h


class CalledAgain(Stores):
    """Another call leaves other tensors: the change is gone."""

    def combine(self, node: Any, left: Any, right: Any) -> Any:
        node.left.h += 1
        before = node.left.h
        again = self.go(node.left)
        again *= 3
        return torch.tanh(before + node.left.h - left)


class Second(Stores):
    """The second of two attributes, one of which is changed."""

    def go(self, node: Any) -> Any:
        node.h, node.c = self.leaf(node), self.leaf(node) * 2
        for kid in node.kids:
            self.go(kid)
            kid.c += kid.h
            node.h = torch.tanh(node.h + kid.h - kid.c)
            node.c = node.c + kid.c
        return node.c


RIGHT = (
    Named, Result, Both, Element, Kept, OwnState, OwnStateLater, Shape, Fresh, PassedDown, ReturnedParameter, Aliases,
    ByWayOfKids, ForwardItself, CalledAgain, Second,
)  # fmt: skip


@pytest.mark.parametrize("make", RIGHT)
def test_changes_in_place(make: type[nn.Module]) -> None:
    judge(make, STRUCTURES)


def shared() -> Node:
    """The left child is below the right one, too: there it is computed anew, and changed."""
    leaf = Node(2)
    return Node(1, leaf, Node(3, leaf, Node(4)))


def twice() -> Node:
    leaf = Node(2)
    return Node(1, leaf, leaf)


@pytest.mark.parametrize("make", [Named, Result, ByWayOfKids, ForwardItself])
@pytest.mark.parametrize("structure", [shared, twice])
def test_shared_nodes_are_refused(make: type[nn.Module], structure: Any, tmp_path: Path) -> None:
    fast = cortex.compile(make().eval(), examples=[STRUCTURES[0]()])
    fast.save(tmp_path / "model.cortex")
    for run in (fast, cortex.load(tmp_path / "model.cortex")):
        with pytest.raises(cortex.StructureError, match="below one other node only"):
            run(structure())


def test_messages(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(Named().eval(), examples=[STRUCTURES[0]()])
    with pytest.raises(cortex.StructureError) as raised:
        fast(shared())
    golden("errors/meaning/shared_node_is_changed", str(raised.value))
    with pytest.raises(cortex.ModelError) as refused:
        cortex.export(fast, tmp_path)
    golden("errors/meaning/export_of_trees_only", str(refused.value))


def test_trees_of_a_batch_may_be_one() -> None:
    module, tree = Named().eval(), STRUCTURES[1]()
    fast = cortex.compile(module, examples=[tree])
    with torch.no_grad():
        got = fast([tree.right, tree, tree.right.left, tree])
        for row, given in zip(got, (tree.right, tree, tree.right.left, tree), strict=True):
            torch.testing.assert_close(row, module(given))


REFUSED = (TwoStates, TwiceInAResult, ListOfStates, StatesOfAll, Accumulator, FieldInPlace, KeptArgument)


@pytest.mark.parametrize("make", REFUSED)
def test_what_others_can_see_is_refused(make: type[nn.Module]) -> None:
    with pytest.raises(cortex.ModelError, match=r"in place|changed here|change their argument"):
        cortex.compile(make().eval(), examples=[STRUCTURES[0]()])
