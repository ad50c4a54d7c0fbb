"""Shape, length, element type and class of what a node holds are facts of that node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from judged import judge
from torch import nn


class Node:
    def __init__(self, x: Any, *kids: Node, tag: str = "") -> None:
        self.x, self.kids, self.tag = x, list(kids), tag


def vector(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def lengths() -> list[Any]:
    """Trees whose vectors have different lengths."""
    return [
        lambda: Node(vector(1, 2), Node(vector(3, 4)), Node(vector(-1, 1))),
        lambda: Node(vector(1, 2, 3), Node(vector(3)), Node(vector(-1, 1), Node(vector(1, 1, 1, 1)))),
        lambda: Node(vector(5)),
        lambda: Node(vector(), Node(vector(3))),
    ]


class Tree(nn.Module):
    def forward(self, node: Any) -> Any:
        h = self.own(node)
        for kid in node.kids:
            h = h + torch.tanh(self(kid))
        return h


class Length(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * len(node.x)


class Shape(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * node.x.shape[0] / (1 + node.x.size(-1))


class Numel(Tree):
    def own(self, node: Any) -> Any:
        return torch.full((2,), 0.5) * node.x.numel() + node.x.dim() + node.x.ndim


class Mean(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * (node.x.sum() / max(len(node.x), 1))


class OnesLike(Tree):
    def own(self, node: Any) -> Any:
        return (torch.ones_like(node.x) * node.x + torch.zeros_like(node.x)).sum() * torch.ones(2)


class NewZeros(Tree):
    def own(self, node: Any) -> Any:
        return node.x.new_zeros(2) + node.x.new_ones(2) * node.x.new_full((2,), 3).sum() + node.x.new_tensor([1.0, 2.0])


class Padded(Tree):
    def own(self, node: Any) -> Any:
        out = torch.zeros(4)
        out[: len(node.x)] = node.x
        return out


class PaddedByFunction(Tree):
    def own(self, node: Any) -> Any:
        return nn.functional.pad(node.x, (0, 4 - node.x.shape[0]))


class EmptyOrNot(Tree):
    def own(self, node: Any) -> Any:
        return torch.zeros(2) if node.x.numel() == 0 else node.x.max() * torch.ones(2)


class Fold(Tree):
    def own(self, node: Any) -> Any:
        h = torch.zeros(2)
        for each in node.x:
            h = torch.tanh(h + each)
        return h


@pytest.mark.parametrize(
    "make", [Length, Shape, Numel, Mean, OnesLike, NewZeros, Padded, PaddedByFunction, EmptyOrNot, Fold]
)
def test_lengths(make: type[nn.Module]) -> None:
    judge(make, lengths())


@pytest.mark.parametrize("make", [Length, Mean, OnesLike, NewZeros, EmptyOrNot, Padded, Fold])
def test_an_empty_tensor_in_the_first_example(make: type[nn.Module]) -> None:
    found = lengths()
    judge(make, [found[3], *found])


def types() -> list[Any]:
    """Trees whose fields have different types."""
    return [
        lambda: Node(vector(1, 2), Node(vector(3, 4))),
        lambda: Node(torch.tensor([1, 2]), Node(torch.tensor([True, False])), Node(torch.tensor([1.5, 2]).double())),
        lambda: Node(torch.tensor([7, -2], dtype=torch.int32), Node(torch.tensor([7, -2], dtype=torch.float16))),
    ]


class DType(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * (2 if node.x.dtype == torch.float32 else 3 if node.x.dtype is torch.int64 else 4)


class IsFloat(Tree):
    def own(self, node: Any) -> Any:
        return node.x.float() if node.x.is_floating_point() else node.x.to(torch.float32) * 2


class ItemSize(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * node.x.element_size() * node.x.itemsize


class Promoted(Tree):
    def own(self, node: Any) -> Any:
        return (node.x + torch.tensor(1)).float() / 2


@pytest.mark.parametrize("make", [DType, IsFloat, ItemSize, Promoted])
def test_types(make: type[nn.Module]) -> None:
    judge(make, types())


def mixed() -> list[Any]:
    """Trees of tensors, arrays, numbers, lists, texts and nothing."""
    return [
        lambda: Node(vector(1, 2), Node(vector(3, 4))),
        lambda: Node(vector(1, 2), Node(3), Node(2.5, Node(True))),
        lambda: Node(np.array([1, 2], np.float32), Node([1.0, 2.0]), Node("text"), Node(None)),
        lambda: Node(np.float32(0.1), Node((1.0, 2.0), Node([])), Node(np.int64(2**40), Node(np.float64(0.1)))),
    ]


class IsTensor(Tree):
    def own(self, node: Any) -> Any:
        return node.x * torch.ones(2) if torch.is_tensor(node.x) else torch.zeros(2)


class Isinstance(Tree):
    def own(self, node: Any) -> Any:
        if isinstance(node.x, torch.Tensor | np.ndarray):
            return torch.ones(2) * len(node.x)
        if isinstance(node.x, bool):
            return torch.ones(2) * 5
        return torch.ones(2) * (node.x if isinstance(node.x, int | float) else 7)


class HasShape(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * (node.x.shape[0] if hasattr(node.x, "shape") and node.x.shape else 7)


class ByType(Tree):
    def own(self, node: Any) -> Any:
        known = {torch.Tensor: 1, np.ndarray: 2, int: 3, float: 4, bool: 5, str: 6, list: 7}
        return torch.ones(2) * known.get(type(node.x), 8)


class Item(Tree):
    def own(self, node: Any) -> Any:
        return torch.ones(2) * (
            node.x.item() if hasattr(node.x, "item") and not len(getattr(node.x, "shape", ())) else 1
        )


@pytest.mark.parametrize("make", [IsTensor, Isinstance, HasShape, ByType, Item])
def test_classes(make: type[nn.Module]) -> None:
    judge(make, mixed())


class ByOperator(nn.Module):
    """An operator's vector of features is longer than another's."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"scan": nn.Linear(2, 4), "join": nn.Linear(3, 4), "sort": nn.Linear(5, 4)})

    def forward(self, node: Any) -> Any:
        h = self.layers[node.tag](node.x)
        for kid in node.kids:
            h = h + torch.tanh(self(kid))
        return h


class ByOperatorInAList(ByOperator):
    def forward(self, node: Any) -> Any:
        h = self.layers[node.tag](torch.tensor(node.x.tolist()) if torch.is_tensor(node.x) else torch.tensor(node.x))
        for kid in node.kids:
            h = h + torch.tanh(self(kid))
        return h


class MatrixOrVector(Tree):
    def own(self, node: Any) -> Any:
        return node.x.sum(0) if node.x.dim() == 2 else node.x[:2]


def operators() -> list[Any]:
    return [
        lambda: Node(vector(1, 2), tag="scan"),
        lambda: Node(vector(1, 2, 3), Node(vector(1, 2), tag="scan"), Node(vector(2, 1), tag="scan"), tag="join"),
        lambda: Node(vector(1, 2, 3, 4, 5), Node(vector(1, 1, 1), tag="join"), tag="sort"),
    ]


@pytest.mark.parametrize("make", [ByOperator])
def test_a_field_has_other_shapes_in_other_kinds(make: type[nn.Module]) -> None:
    judge(make, operators())


def test_a_list_has_other_lengths_in_other_kinds() -> None:
    judge(
        ByOperatorInAList,
        [
            lambda: Node([1.0, 2.0], tag="scan"),
            lambda: Node([1.0, 2.0, 3.0], Node([4.0, 2.0], tag="scan"), tag="join"),
            lambda: Node([1.0, 2.0, 3.0, 4.0, 5.0], Node([4.0, 2.0], tag="scan"), tag="sort"),
        ],
    )


def test_matrices_and_vectors() -> None:
    judge(
        MatrixOrVector,
        [
            lambda: Node(vector(1, 2), Node(vector(1, 2, 3))),
            lambda: Node(torch.ones(3, 2), Node(vector(1, 2), Node(torch.arange(4.0).reshape(2, 2)))),
            lambda: Node(torch.ones(0, 2), Node(vector(1, 2))),
        ],
    )
