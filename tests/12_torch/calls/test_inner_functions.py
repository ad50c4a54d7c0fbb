"""Recursive functions that forward defines inside itself, with what they take from it: compiled as they are."""

from __future__ import annotations

import functools
import random
from typing import Any

import nodes
import pytest
import torch
from torch import nn

import cortex

H = 4


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.one, self.two = nn.Embedding(nodes.WORDS, H), nn.Linear(H, H), nn.Linear(2 * H, H)

    def word(self, node):
        return self.emb(torch.tensor(node.word))


class Plain(Inner):
    """It takes nothing but the module."""

    def forward(self, tree):
        def encode(node):
            return torch.tanh(self.one(sum([encode(child) for child in node.children], self.word(node))))

        return encode(tree)


class EachOther(Inner):
    """A lambda and a function, one of which is defined after the other."""

    def forward(self, tree):
        even = lambda node: torch.tanh(sum((odd(child) for child in node.children), self.word(node)))  # noqa: E731

        def odd(node):
            h = self.word(node)
            for child in node.children:
                h = h * even(child)
            return torch.sigmoid(h)

        return even(tree)


class Captured(Inner):
    """Tensors that forward computes, constants, keywords with defaults, more arguments, a function that helps."""

    def forward(self, tree, scale=1.0):
        start, times = torch.tanh(self.one(torch.ones(H))), 3

        def join(x, below):
            return self.two(torch.cat([x, below])) * scale

        def encode(node, *more, is_even=True, **named):
            h = join(self.word(node), start * times)
            for child in node.children:
                h = h + encode(child, *more, is_even=not is_even, **named)
            return torch.tanh(h) * more[0] if is_even else torch.sigmoid(h) + named["shift"]

        return encode(tree, 0.5, shift=1.0)


class Memo(Inner):
    """A dictionary of forward's, for nodes that are shared."""

    def forward(self, tree):
        memo = {}

        def encode(node):
            if node not in memo:
                memo[node] = torch.tanh(sum((self.one(encode(child)) for child in node.children), self.word(node)))
            return memo[node]

        return encode(tree)


class Cached(Inner):
    """The same by lru_cache."""

    def forward(self, tree):
        @functools.lru_cache(maxsize=None)  # noqa: UP033 - as people write it
        def encode(node):
            return torch.tanh(sum((self.one(encode(child)) for child in node.children), self.word(node)))

        return encode(tree)


class TwoPasses(Inner):
    """Up with states on the nodes, then down with results that come back; one variable has a parameter's name."""

    def forward(self, tree):
        h = self.one(torch.ones(H))

        def up(node):
            node.up = torch.tanh(sum((up(child) for child in node.children), self.word(node) + h))
            return node.up

        def down(node, h):
            d = torch.tanh(self.two(torch.cat([node.up, h])))
            return d + sum((down(child, d) for child in node.children), torch.zeros(H))

        up(tree)
        return down(tree, torch.zeros(H))


class Deeper(Inner):
    """A function inside a function inside forward."""

    def forward(self, tree):
        weight = self.one.weight.t()

        def outer(node, factor):
            def inner(below):
                return torch.tanh(sum((inner(c) * factor for c in below.children), self.word(below) @ weight))

            return inner(node)

        return outer(tree, 0.5)


STYLES: dict[type[Inner], Any] = {
    **dict.fromkeys((Plain, EachOther, Captured, TwoPasses, Deeper), nodes.nary),
    **dict.fromkeys((Memo, Cached), nodes.dag),
}


@pytest.mark.parametrize("kind", STYLES)
def test_inner_functions_are_compiled(kind: type[Inner]) -> None:
    random.seed(1)
    torch.manual_seed(1)
    module, make = kind().eval(), STYLES[kind]
    fast = cortex.compile(module, examples=[make() for _ in range(8)])
    with torch.no_grad():
        for tree in (make() for _ in range(6)):
            torch.testing.assert_close(fast(tree), module(tree), rtol=1e-4, atol=1e-5)


def test_the_module_itself_is_as_before() -> None:
    module = Plain().eval()
    code = Plain.forward.__code__
    cortex.compile(module, examples=[nodes.nary()])
    assert Plain.forward.__code__ is code and "forward" not in vars(module)
