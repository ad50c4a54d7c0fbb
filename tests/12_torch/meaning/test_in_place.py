"""Changes in place are seen by everyone who holds the tensor, as in Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from judged import judge
from torch import nn


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


@pytest.mark.parametrize(
    "make",
    [
        Named, Result, Both, Element, Kept, OwnState, OwnStateLater, Shape, TwoStates, TwiceInAResult, ListOfStates,
        StatesOfAll, Fresh, PassedDown, Accumulator, FieldInPlace, ReturnedParameter, KeptArgument, Aliases,
    ],
)  # fmt: skip
def test_changes_in_place(make: type[nn.Module]) -> None:
    judge(make, STRUCTURES)
