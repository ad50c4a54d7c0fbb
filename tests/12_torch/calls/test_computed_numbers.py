"""What Python and torch compute from numbers of nodes outside float32: the same as uncompiled, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cortex

T = 1_700_000_000


class Node:
    def __init__(self, *children: Node, **fields: Any) -> None:
        self.left, self.right = children or (None, None)
        self.parent: Node | None = None
        for child in children:
            child.parent = self
        vars(self).update(fields)


def pairs(*rows: tuple[Any, Any]) -> list[dict[str, Any]]:
    return [{"a": a, "b": b} for a, b in rows]


def whole(*rows: Any) -> list[dict[str, Any]]:
    return pairs(*((torch.tensor(a), torch.tensor(b)) for a, b in rows))


def wide(*rows: Any) -> list[dict[str, Any]]:
    return pairs(*((torch.tensor(a).double(), torch.tensor(b).double()) for a, b in rows))


LARGE = pairs((2**24 + 1, 2**24), (2**53 + 1, 2**53), (T, T + 7))
TIMES = pairs((T + 135.25, T), (T + 0.5, T - 1), (T, T))
LISTS = pairs(([2**24 + 1, 2], [2**24, 1]), ([T + 0.5, 1.0], [float(T), 4.0]), ([5, 1], [3, 2]))
WHOLE = whole(([2**24 + 1, 5], [2**24, 1]), ([2**40, 1], [2**40 - 3, 2]), ([1, 2], [3, 4]))
WIDE = wide(([T + 0.5], [T]), ([T], [T + 135.25]), ([1.5], [0.25]))

Case = tuple[Callable[[Any], Any], list[dict[str, Any]]]
NUMBERS: dict[str, Case] = {
    "minutes": (lambda n: (n.a - n.b) / 60, TIMES),
    "differences": (lambda n: n.a - n.b, LARGE),
    "python_numbers": (lambda n: float(n.a) - float(n.b) + int(n.a - n.b) % 7 + float(n.a - n.b) / 60, LARGE),
    "functions": (lambda n: math.sqrt(abs(n.a - n.b)) + max(n.a - n.b, 0) + round(n.a / n.b, 2), LARGE),
    "of_parent": (lambda n: 0.0 if n.parent is None else n.a - n.parent.a, TIMES),
    "fractions": (lambda n: float(n.a * 3 - n.b), pairs((Fraction(1, 3), 1), (Fraction(1, 2), 1), (2, 5))),
    "tensor_of_numbers": (lambda n: torch.tensor([n.a - n.b, 1]).sum() + torch.FloatTensor([n.a - n.b]), LARGE),
    "tensors_of_integers": (lambda n: (torch.tensor(n.a) - torch.tensor(n.b)).float(), LARGE),
    "items": (lambda n: n.a[0] - n.b[0] + sum(x - y for x, y in zip(n.a, n.b, strict=True)), LISTS),
    "lists": (lambda n: len(n.a + n.b) + len(n.a * 2), LISTS),
    "integers": (lambda n: (n.a - n.b).float().sum() + torch.sub(n.a, n.b)[0], WHOLE),
    "methods_of_integers": (lambda n: n.a.sub(n.b).float().sum() + (n.a[0] - n.b[0]) * 2, WHOLE),
    "comparisons_of_integers": (lambda n: (n.a == n.b).float().sum() + (n.a > n.b)[0] + n.a.eq(n.b)[1], WHOLE),
    "doubles": (lambda n: (n.a - n.b).float() + torch.sub(n.a, n.b).float() + n.b.sub(n.a).float() / 2, WIDE),
    "comparisons_of_doubles": (lambda n: (n.a > n.b).float() + torch.eq(n.a, n.b).float(), WIDE),
    "arrays": (lambda n: torch.tensor(float(n.a - n.b)), pairs(*((np.array(a), np.array(b)) for a, b in [(T, 1)] * 3))),
}
DECISIONS: dict[str, Case] = {
    "order": (lambda n: n.a > n.b, LARGE),
    "equality": (lambda n: n.a == n.b, pairs((2**24 + 1, 2**24), (2, 2.0), (math.nan, math.nan))),
    "sums": (lambda n: n.a - n.b == 1, LARGE),
    "truth": (lambda n: n.a - n.b, pairs((2**24 + 1, 2**24), (1, 1), (2, 1))),
    "lists": (lambda n: n.a == n.b or n.a == (1, 2), pairs(([1, 2], (1, 2)), ((1, 2), 3), ([3], [3]))),
    "identity": (lambda n: n.a is True, pairs((True, 1), (1, 1), (False, 1))),
    "truth_as_number": (lambda n: n.a == 1 and str(n.a) == "True", pairs((True, 1), (1, 1), (1.0, 1))),
    "single_precision": (lambda n: n.a == 0.1, pairs((0.1, 1), (np.float32(0.1), 1), (0.2, 1))),
}


class Sum(nn.Module):
    def __init__(self, value: Callable[[Any], Any]) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(1))
        self.value = value

    def forward(self, n: Any) -> Any:
        h = self.one * self.value(n)
        return h if n.left is None else h + 2.0 * self.forward(n.left) + 4.0 * self.forward(n.right)


def trees(rows: list[dict[str, Any]]) -> list[Node]:
    orders = [(0, 1, 2), (2, 1, 0)]
    return [Node(Node(**rows[j]), Node(**rows[k]), **rows[i]) for i, j, k in orders]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    value, rows = NUMBERS[name]
    module = Sum(value)
    for tree in trees(rows):
        with torch.no_grad():
            torch.testing.assert_close(cortex.compile(module)(tree), module(tree).float(), rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions(name: str) -> None:
    decide, rows = DECISIONS[name]
    module = Sum(lambda n: 10.0 if decide(n) else 3.0)
    for tree in trees(rows):
        with torch.no_grad():
            assert cortex.compile(module)(tree) == module(tree), rows


def test_division_by_zero() -> None:
    fast = cortex.compile(Sum(lambda n: n.a / n.b))
    fast(Node(a=1, b=2))
    with pytest.raises(cortex.StructureError, match=r"ZeroDivisionError: division by zero[\s\S]*lambda n: n.a / n.b"):
        fast(Node(a=1, b=0))


@pytest.mark.parametrize("value", [lambda n: n.a.sum().float(), lambda n: n.a.reshape(1, 2).sub(1).float().sum()])
def test_integers_that_float32_cannot_hold(value: Callable[[Any], Any]) -> None:
    """Where torch computes with integers and there is no field for the result, they must be exact in float32."""
    fast, module = cortex.compile(Sum(value)), Sum(value)
    small, large = (Node(a=torch.tensor([n, -(2**23)])) for n in (2**24 - 3, 2**24 + 1))
    torch.testing.assert_close(fast(small), module(small).detach())
    try:
        torch.testing.assert_close(fast(large), module(large).detach(), rtol=0, atol=0)
    except cortex.StructureError as error:
        assert "16777217" in str(error)


class Thread(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, post: Any) -> Any:
        h = torch.zeros(3)
        for r in post.replies:
            h = h + self.layer(self.forward(r) + (r.t - post.t) / 60)
        return h


class Post:
    def __init__(self, t: float, *replies: Post) -> None:
        self.t, self.replies = t, list(replies)


def test_numbers_of_a_node_and_its_children(tmp_path: Path) -> None:
    module = Thread()
    posts = [Post(T, *(Post(T + 135.25 * i) for i in range(n))) for n in (2, 3, 5, 1, 7)]
    fast = cortex.compile(module)
    fast(posts[0])
    fast.save(tmp_path / "thread.cortex")
    for post in posts:
        torch.testing.assert_close(fast(post), module(post).detach(), rtol=1e-5, atol=1e-6)
    loaded = cortex.load(tmp_path / "thread.cortex")
    np.testing.assert_allclose(np.asarray(loaded(posts[0])), module(posts[0]).detach().numpy(), rtol=1e-5, atol=1e-6)
