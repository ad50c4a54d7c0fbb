"""What the PyTorch references share: weights as tensors, and recursion without Python's recursion limit."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as State
from typing import Any

from cortex.structures.tree import postorder
from cortex.zoo.entry import Weights

__all__ = ["Recursive", "State", "recurse", "tensors"]

Recursive = Callable[[Any], Any]


def recurse(cell: Callable[[Any, Recursive], Any]) -> Recursive:
    """The recursive function f with f(node) = cell(node, f), computed children first.

    `cell` may call f on nodes directly below its own. A node shared by several parents is computed once, by
    identity; the walk keeps its own stack, so a chain may be as deep as memory allows.
    """

    def f(root: Any) -> Any:
        states: dict[int, Any] = {}
        for node in postorder(root):
            states[id(node)] = cell(node, lambda child: states[id(child)])
        return states[id(root)]

    return f


def tensors(weights: Weights) -> Any:
    """The weights as PyTorch tensors in their own precision, by attribute."""
    import torch

    return State(**{name: torch.from_numpy(array) for name, array in weights.items()})
