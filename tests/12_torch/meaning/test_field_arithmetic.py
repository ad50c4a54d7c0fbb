"""Python's arithmetic on what nodes hold is Python's, and torch's is torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from judged import judge
from torch import nn

import cortex


class Post:
    def __init__(self, t: Any, x: float, k: int, *replies: Post) -> None:
        self.t, self.x, self.k, self.replies = t, x, k, list(replies)
        self.at = torch.tensor(t)
        self.ids = torch.tensor([2**24 + k, 2**40 + t, -(2**53) - k])


NOW = 1_700_000_000
STRUCTURES = (
    lambda: Post(NOW, 0.3, 1, Post(NOW + 61, 2.0, 2), Post(NOW + 3600, 0.7, 3, Post(NOW + 3601, 4.0, 4))),
    lambda: Post(NOW + 1, 0.1, 7, Post(NOW + 2, 1e-9, 5, Post(NOW + 2, 1e12, 2**40), Post(NOW + 3, 3.0, 2**24 + 1))),
    lambda: Post(2**62, 1.0, 3),
)


class Tree(nn.Module):
    def forward(self, post: Any) -> Any:
        h = torch.ones(2) * self.own(post)
        for reply in post.replies:
            h = h + torch.tanh(self(reply)) * self.edge(post, reply)
        return h

    def own(self, post: Any) -> Any:
        return 1.0

    def edge(self, post: Any, reply: Any) -> Any:
        return 1.0


class Minutes(Tree):
    def edge(self, post: Any, reply: Any) -> Any:
        return (reply.t - post.t) / 60


class OneMinus(Tree):
    def own(self, post: Any) -> Any:
        return 1 - post.x


class Root(Tree):
    def own(self, post: Any) -> Any:
        return post.x**0.5


class Inverse(Tree):
    def own(self, post: Any) -> Any:
        return 1 / post.k


class Large(Tree):
    def own(self, post: Any) -> Any:
        return (post.t % 1000) + (post.k - 2**24) * 1e-6 + (post.t == NOW + 2)


class Whole(Tree):
    def own(self, post: Any) -> Any:
        return post.t // 60 - NOW // 60 + divmod(post.k, 5)[1] + round(post.x, 1) + int(post.x * 10)


class Equal(Tree):
    def edge(self, post: Any, reply: Any) -> Any:
        return 2 if post.t == reply.t else 3 if reply.t - post.t < 2 else 5


class TensorsSubtracted(Tree):
    def edge(self, post: Any, reply: Any) -> Any:
        return (reply.at - post.at) / 60


class TensorsCompared(Tree):
    def edge(self, post: Any, reply: Any) -> Any:
        return (reply.at > post.at).float() + 2 * (reply.at == post.at)


class TensorsMadeOfNumbers(Tree):
    def edge(self, post: Any, reply: Any) -> Any:
        return (torch.tensor(reply.t) - torch.tensor(post.t)).float()


class ElementsCompared(Tree):
    def own(self, post: Any) -> Any:
        return (post.ids[1] > post.ids[0]).float() + (post.ids[1:] == post.ids[:2]).sum() + (post.ids - 2**40)[1] / 60


class VectorsCompared(Tree):
    def edge(self, post: Any, reply: Any) -> Any:
        return (reply.ids > post.ids).sum() + (reply.ids - post.ids)[0] + (reply.ids[1] - post.ids[1])


class Remainder(Tree):
    def own(self, post: Any) -> Any:
        return post.at % 60 + (post.at // 60 - NOW // 60)


@pytest.mark.parametrize(
    "make",
    [
        Minutes, OneMinus, Root, Inverse, Large, Whole, Equal, TensorsSubtracted, TensorsCompared,
        TensorsMadeOfNumbers, ElementsCompared, Remainder,
    ],
)  # fmt: skip
def test_arithmetic(make: type[nn.Module]) -> None:
    judge(make, STRUCTURES)


def test_integers_that_float32_does_not_hold_are_refused() -> None:
    """A number of elements is counted in float32, so what is added to it has to fit."""
    made = VectorsCompared().eval()
    with pytest.raises(cortex.StructureError, match="is computed with as float32, which cannot hold it"):
        for structure in STRUCTURES:
            cortex.compile(made, examples=[structure()])(structure())


def test_a_division_by_zero_names_the_node() -> None:
    fast = cortex.compile(Inverse().eval(), examples=[STRUCTURES[0]()])
    with pytest.raises(cortex.StructureError, match=r"replies\[1\].*division by zero"):
        fast(Post(NOW, 0.5, 1, Post(NOW, 0.5, 2), Post(NOW, 0.5, 0)))


class Latest(nn.Module):
    """Integers computed along the tree, beyond what float32 holds."""

    def forward(self, post: Any) -> Any:
        latest = post.at
        for reply in post.replies:
            latest = torch.maximum(latest, self(reply))
        return latest


class Sums(nn.Module):
    def forward(self, post: Any) -> Any:
        total = torch.tensor(post.k)
        for reply in post.replies:
            total = total + self(reply)
        return total


class Votes(nn.Module):
    def forward(self, post: Any) -> Any:
        votes = torch.tensor([post.k % 3, post.k // 3])
        for reply in post.replies:
            votes = votes * 2 + self(reply)
        return votes


def small(k: int) -> Post:
    return Post(k, 1.0, k, Post(1, 1.0, 2), Post(2, 1.0, 3, Post(3, 1.0, k)))


@pytest.mark.parametrize("make", [Latest, Sums, Votes])
def test_integers_along_the_tree(make: type[nn.Module]) -> None:
    judge(make, [lambda: small(7), lambda: small(2**20), lambda: Post(1, 0.0, -3)])


@pytest.mark.parametrize("make", [Latest, Sums, Votes])
@pytest.mark.parametrize("k", [2**24 + 1, 2**24, 2**40])
def test_large_integers_along_the_tree_are_refused(make: type[nn.Module], k: int) -> None:
    fast = cortex.compile(make().eval(), examples=[small(7)])
    with pytest.raises(cortex.StructureError, match="integer"):
        fast(Post(k, 1.0, k * 3, small(k)))


def test_the_message_of_a_large_result(golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(Sums().eval(), examples=[small(7)])
    with pytest.raises(cortex.StructureError) as raised:
        fast(small(2**24))
    golden("errors/meaning/large_integer", str(raised.value))
