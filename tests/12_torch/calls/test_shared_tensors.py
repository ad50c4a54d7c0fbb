"""Changes in place of what other calls can see too are refused; what is fresh may be changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import cortex


class Node:
    def __init__(self, x: float, left: Any = None, right: Any = None) -> None:
        self.x, self.left, self.right = x, left, right
        self.vec = torch.tensor([x, 2.0])


def tree() -> Node:
    return Node(1, Node(2, Node(4), Node(5)), Node(3))


def leaf(node: Any) -> Any:
    return torch.tensor([node.x, 1.0]) / 5


class Stores(nn.Module):
    def forward(self, node: Any) -> Any:
        self.go(node)
        return node.h

    def go(self, node: Any) -> Any:
        node.h = leaf(node) if node.left is None else self.combine(node, self.go(node.left), self.go(node.right))
        return node.h


class StoredList(nn.Module):
    def forward(self, node: Any) -> Any:
        self.go(node)
        return node.hs[0]

    def go(self, node: Any) -> None:
        if node.left is None:
            node.hs = [leaf(node)]
            return
        self.go(node.left)
        self.go(node.right)
        node.hs = node.left.hs
        node.hs[0] = torch.tanh(node.hs[0] + node.right.hs[0])


class ReturnedParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(2))

    def forward(self, node: Any) -> Any:
        if node.left is None:
            return self.p
        h = self(node.left)
        h += 1
        return torch.tanh(h * self(node.right) / 10)


class KeptArgument(nn.Module):
    def forward(self, node: Any) -> Any:
        return self.go(node, torch.zeros(2))

    def go(self, node: Any, above: Any) -> Any:
        if node.left is None:
            return above
        x = above + leaf(node)
        a, b = self.go(node.left, x), self.go(node.right, x)
        x += 1
        return torch.tanh(a + b)


class TwiceInAResult(nn.Module):
    def forward(self, node: Any) -> Any:
        return self.go(node)[0]

    def go(self, node: Any) -> Any:
        if node.left is None:
            h = leaf(node)
            return h, h
        (a, c), (b, d) = self.go(node.left), self.go(node.right)
        c += d
        return torch.tanh(a + b), torch.tanh(c)


class FieldInPlace(nn.Module):
    def forward(self, node: Any) -> Any:
        f = node.vec
        f *= 2
        h = f + node.vec
        return h if node.left is None else torch.tanh(h + self(node.left) + self(node.right))


class ReadByAnother(Stores):
    """What the upward pass changes, another pass reads."""

    def forward(self, node: Any) -> Any:
        self.go(node)
        return self.down(node)

    def combine(self, node: Any, left: Any, right: Any) -> Any:
        left += right
        return torch.tanh(left)

    def down(self, node: Any) -> Any:
        return node.h if node.left is None else node.h + self.down(node.left) + self.down(node.right)


REFUSED = (
    StoredList, ReturnedParameter, KeptArgument, TwiceInAResult, FieldInPlace, ReadByAnother,
)  # fmt: skip


@pytest.mark.parametrize("module", REFUSED)
def test_lost_changes_are_refused(module: type[nn.Module], golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(module().eval(), examples=[tree()])
    golden(f"errors/torch_calls/lost_{module.__name__}", str(raised.value).partition("\n")[0])


class FreshResults(nn.Module):
    def forward(self, node: Any) -> Any:
        if node.left is None:
            return leaf(node)
        h = self(node.left)
        h += self(node.right)
        again = self(node.left)
        again[0] = 3
        return torch.tanh(h + again)


class Copies(Stores):
    def combine(self, node: Any, left: Any, right: Any) -> Any:
        t = node.left.h.clone()
        t += right
        return torch.tanh(t + node.left.h)


@pytest.mark.parametrize("module", [FreshResults, Copies])
def test_what_is_fresh_may_be_changed(module: type[nn.Module]) -> None:
    made = module().eval()
    with torch.no_grad():
        torch.testing.assert_close(cortex.compile(made)(tree()), made(tree()), rtol=1e-4, atol=1e-5)
