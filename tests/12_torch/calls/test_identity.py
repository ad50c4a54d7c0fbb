"""Nodes compared by `is`, `==`, `in`, sets, dictionaries and `id`: as the real nodes compare."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cortex


class Node:
    def __init__(self, x: float, children: tuple[Any, ...] = ()) -> None:
        self.x, self.children, self.parent = x, list(children), None
        for child in children:
            child.parent = self

    def is_first(self) -> bool:
        return self.parent is not None and self.parent.children[0] is self


@dataclass
class Valued:
    """Equal where the contents are, but for the parent."""

    x: float
    children: list[Valued] = field(default_factory=list)
    parent: Any = field(default=None, compare=False, repr=False)


def tree() -> Node:
    return Node(1, (Node(2, (Node(4), Node(5))), Node(3)))


def shared() -> Node:
    leaf = Node(5)
    return Node(1, (leaf, leaf))


def valued(*leaves: float) -> Callable[[], Valued]:
    return lambda: Valued(1.0, [Valued(x) for x in leaves])


def siblings(node: Any) -> Any:
    return 1 if node.parent is None else 1 + sum(c.x for c in node.parent.children if c is not node)


def by_id(node: Any) -> Any:
    seen = set()
    for child in node.children:
        seen.add(id(child))
    return 1 + len(seen)


def counted(node: Any) -> Any:
    found: dict[Any, int] = {}
    for child in node.children:
        found[child] = found.get(child, 0) + 1
    return 1 + sum(n * n for n in found.values())


def check(module: nn.Module, *structures: Callable[[], Any]) -> Any:
    fast = cortex.compile(module.eval())
    for make in structures:
        with torch.no_grad():
            torch.testing.assert_close(fast(make()), module(make()), rtol=1e-4, atol=1e-5)
    return fast


def by_is(node: Any) -> Any:
    return 2 if node.parent is not None and node.parent.children[0] is node else 1


def by_equal(node: Any) -> Any:
    return 2 if node.parent is not None and node.parent.children[0] == node else 1


def by_in(node: Any) -> Any:
    return 3 if node.parent is not None and node in node.parent.children[1:] else 1


def by_index(node: Any) -> Any:
    return 5 if node.parent is None else node.parent.children.index(node) + 1


def by_operator(node: Any) -> Any:
    return 2 if len(node.children) > 1 and operator.is_(*node.children) else 1


def by_set(node: Any) -> Any:
    return 1 + len(set(node.children))


def by_method(node: Any) -> Any:
    return 2 if node.is_first() else 1


@pytest.mark.parametrize(
    "scale", [by_is, by_equal, by_in, by_index, by_operator, by_set, by_method, siblings, by_id, counted]
)
def test_two_ways_to_one_node(scale: Callable[[Any], Any], tmp_path: Path) -> None:
    module, structures = module_of(scale), (tree,) if scale is by_index else (tree, shared)
    fast = check(module, *structures)
    fast.save(tmp_path / "saved.cortex")
    loaded = cortex.load(tmp_path / "saved.cortex", as_torch=True)
    for make in structures:
        torch.testing.assert_close(loaded(make()), fast(make()), rtol=0, atol=0)


def module_of(scale: Callable[[Any], Any]) -> nn.Module:
    """A function at the top of a file is seen where code names it."""

    class Own(nn.Module):
        def forward(self, node: Any) -> Any:
            h = torch.tensor([node.x, 1.0]) * scale(node)
            for child in node.children:
                h = h + self(child) * 0.5
            return torch.tanh(h / 10)

    return Own()


def test_nodes_with_their_own_equality() -> None:
    check(module_of(lambda n: 3 if n.children and n.children[0] == n.children[1] else 1), valued(2, 3), valued(2, 2))
    with pytest.raises(cortex.ModelError, match="unhashable"):
        cortex.compile(module_of(by_set).eval(), examples=[valued(2, 3)()])


class Remembers(nn.Module):
    """A shared node counts less each time, which no single result can say."""

    def forward(self, node: Any) -> Any:
        return self.go(node, {})

    def go(self, node: Any, memo: dict[Any, Any]) -> Any:
        if node in memo:
            return memo[node] * 0.5
        h = torch.tensor([node.x, 1.0])
        for child in node.children:
            h = h + self.go(child, memo)
        memo[node] = torch.tanh(h / 10)
        return memo[node]


def test_a_memo_that_gives_something_else_is_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(Remembers().eval(), examples=[shared()])
    golden("errors/torch_calls/memo_something_else", str(raised.value).partition("\n")[0])


def test_hash_of_a_node_is_refused(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as raised:
        cortex.compile(module_of(lambda node: hash(node) % 3).eval(), examples=[tree()])
    golden("errors/torch_calls/hash_of_node", str(raised.value).partition("\n")[0])


@cortex.model
def compares(node: Any, w: Any) -> Any:
    if node.left is None:
        return w.b * node.x
    return compares(node.left) * (2.0 if node.left is node.right else 1.0) + compares(node.right)


def test_a_model_function_may_compare_nodes() -> None:
    def leaf(x: float) -> Any:
        return SimpleNamespace(left=None, right=None, x=x)

    shared, weights = leaf(3.0), {"b": torch.ones(2).numpy()}
    twice, once = SimpleNamespace(left=shared, right=shared), SimpleNamespace(left=leaf(3.0), right=leaf(3.0))
    fast = cortex.compile(compares, weights, examples=[once], check=False)
    for tree in (once, twice, SimpleNamespace(left=twice, right=once), SimpleNamespace(left=twice, right=twice)):
        assert np.array_equal(fast(tree)[0], compares(tree, weights))
