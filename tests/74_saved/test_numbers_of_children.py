"""A saved model takes every number of children that it took before, and refuses those that its code tells apart."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import cortex
from cortex.frontend.arity.mentions import near, numbers_in

SIZE = 3
LIMIT = 100
WEIGHTS = {"U": np.linspace(-1, 1, SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE), "b": np.ones(SIZE, np.float32)}


def Node(count: int, others: int = 0, depth: int = 1) -> Any:
    def below(n: int) -> list[Any]:
        return [Node(0, 0, 0) for _ in range(n)] if depth else []

    return SimpleNamespace(children=below(count), others=below(others))


@cortex.model
def plain(node: Any, w: Any) -> Any:
    total = w.b
    for child in node.children:
        total = total + cortex.tanh(w.U @ plain(child, w))
    return total * 0.1


@cortex.model
def special(node: Any, w: Any) -> Any:
    total = w.b * 2 if len(node.children) == LIMIT else w.b
    for child in node.children:
        total = total + cortex.tanh(w.U @ special(child, w))
    return total * 0.1


@cortex.model
def limited(node: Any, w: Any) -> Any:
    total = w.b
    for child in node.children[:LIMIT]:
        total = total + cortex.tanh(w.U @ limited(child, w))
    return total * 0.1


@cortex.model
def periodic(node: Any, w: Any) -> Any:
    total = w.b * 2 if len(node.children) % 37 == 0 and len(node.children) > 0 else w.b
    for child in node.children:
        total = total + cortex.tanh(w.U @ periodic(child, w))
    return total * 0.1


@cortex.model
def pair(node: Any, w: Any) -> Any:
    total = w.b
    for child in node.children:
        total = total + cortex.tanh(w.U @ pair(child, w))
    for child in node.others:
        total = total - cortex.tanh(w.U @ pair(child, w)) * 0.5
    return total * 0.1


EXAMPLES = [Node(n) for n in (0, 2, 3, 4)]


@pytest.mark.parametrize(
    "model, refused",
    [
        (plain, lambda n: False),
        (special, lambda n: False),  # each kind that the code tells apart has been looked for
        (limited, lambda n: n in (111, 130, 148, 150, 222, 255, 256)),  # those near known numbers have kinds
        (periodic, lambda n: False),  # the remainder is data
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_functions(model: Any, refused: Callable[[int], bool], again: Callable[..., Any]) -> None:
    fast = cortex.compile(model, WEIGHTS, examples=EXAMPLES)
    loaded = again(fast)
    for n in (
        0,
        1,
        2,
        5,
        33,
        36,
        37,
        63,
        64,
        65,
        74,
        98,
        99,
        100,
        101,
        102,
        111,
        130,
        148,
        150,
        199,
        222,
        255,
        256,
        300,
    ):
        tree = Node(n)
        if refused(n):
            with pytest.raises(
                cortex.StructureError, match=rf"len\(node.children\) (is {n}, and known is 0 to|== {n}\) is True)"
            ):
                loaded(tree)
        else:
            np.testing.assert_array_equal(loaded(tree).out, fast(tree).out)


def test_two_lists(again: Callable[..., Any]) -> None:
    fast = cortex.compile(pair, WEIGHTS, examples=[Node(a, b) for a in (0, 2, 3) for b in (0, 2, 3)])
    loaded = again(fast)
    for a, b in ((0, 0), (0, 7), (70, 0), (1, 1), (5, 11), (20, 3), (64, 200), (255, 255)):
        np.testing.assert_array_equal(loaded(Node(a, b)).out, fast(Node(a, b)).out)


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.U = torch.nn.Linear(SIZE, SIZE)

    def forward(self, node: Any) -> Any:
        total = torch.ones(SIZE)
        for child in node.children:
            total = total + self(child)
        return torch.tanh(self.U(total))


def test_modules(again: Callable[..., Any]) -> None:
    fast = cortex.compile(Module().eval(), examples=EXAMPLES[::-1])
    loaded = again(fast)
    for n in (0, 1, 20, 64, 65, 111, 300):
        np.testing.assert_array_equal(loaded(Node(n)), fast(Node(n)).numpy())


def test_numbers_in_code() -> None:
    holder = SimpleNamespace(limits={"a": 41}, table=np.ones((43, 2)), many=list(range(1000, 2000)))

    def code(node: Any, most: int = 47) -> Any:
        return node.count in (53, 59) or node.count > holder.limits["a"] or [x for x in node if x == LIMIT * 61]

    assert {41, 43, 47, 53, 59, 61, LIMIT, 1000} <= numbers_in([code, holder]) and 1500 not in numbers_in([holder])
    assert near({37, 3}, 33, 120) == [35, 36, 37, 38, 39, 74, 111]
