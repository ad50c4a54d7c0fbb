"""The tensor functions of `cortex` in PyTorch, under the same names, so that one source text runs on both.

Reductions over children are told what they give over none: `sum((... for k in node.children), none=(7,))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

Tensor = torch.Tensor
sigmoid = torch.sigmoid
exp, log, sqrt = torch.exp, torch.log, torch.sqrt
matmul, outer, einsum = torch.matmul, torch.outer, torch.einsum
state = SimpleNamespace


def model(f: Callable[..., Any]) -> Callable[..., Any]:
    """Compute each node once, by identity, until `forget`."""
    done: dict[int, Any] = {}

    def computed_once(node: Any, *weights: Any) -> Any:
        if id(node) not in done:
            done[id(node)] = f(node, *weights)
        return done[id(node)]

    computed_once.forget = done.clear  # type: ignore[attr-defined]
    return computed_once


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else torch.tensor(float(x))


def tanh(x: Any) -> Tensor:
    return torch.tanh(_tensor(x))


def abs(x: Any) -> Tensor:
    return torch.abs(_tensor(x))


def relu(x: Any) -> Tensor:
    return torch.relu(_tensor(x))


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.nn.functional.elu(x, alpha)


def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    return torch.nn.functional.leaky_relu(x, slope)


def maximum(x: Any, y: Any) -> Tensor:
    return torch.maximum(_tensor(x), _tensor(y))


def minimum(x: Any, y: Any) -> Tensor:
    return torch.minimum(_tensor(x), _tensor(y))


def where(cond: Tensor, x: Any, y: Any) -> Tensor:
    return torch.where(cond, x, y)


def concat(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    return torch.cat(list(xs), axis)


def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    return torch.stack(list(xs), axis)


def split(x: Tensor, parts: int | list[int], axis: int = 0) -> Sequence[Tensor]:
    return torch.split(x, x.shape[axis] // parts if isinstance(parts, int) else parts, axis)


def reshape(x: Tensor, *shape: int) -> Tensor:
    return x.reshape(*shape)


def transpose(x: Tensor) -> Tensor:
    return x.permute(*reversed(range(x.ndim)))


def embedding(table: Tensor, index: int) -> Tensor:
    return table[index]


def dot(x: Tensor, y: Tensor) -> Tensor:
    return torch.dot(x, y)


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape)


def ones(*shape: int) -> Tensor:
    return torch.ones(*shape)


def full(shape: tuple[int, ...], value: float) -> Tensor:
    return torch.full(shape, value)


def softmax(x: Any, axis: int = -1) -> Any:
    if isinstance(x, Tensor):
        return torch.softmax(x, axis)
    items = list(x)
    return list(torch.softmax(torch.stack(items), 0)) if items else []


def sum(x: Any, axis: int | None = None, keepdims: bool = False, none: tuple[int, ...] = ()) -> Tensor:
    if isinstance(x, Tensor):
        return torch.sum(x, axis, keepdim=keepdims)
    return _over(x, none, lambda items: torch.sum(items, 0))


def mean(x: Any, axis: int | None = None, keepdims: bool = False, none: tuple[int, ...] = ()) -> Tensor:
    if isinstance(x, Tensor):
        return torch.mean(x, axis, keepdim=keepdims)
    return _over(x, none, lambda items: torch.mean(items, 0))


def max(x: Any, axis: int | None = None, keepdims: bool = False, none: tuple[int, ...] = ()) -> Tensor:
    if isinstance(x, Tensor):
        return torch.amax(x, () if axis is None else axis, keepdim=keepdims)
    return _over(x, none, lambda items: torch.amax(items, 0))


def min(x: Any, axis: int | None = None, keepdims: bool = False, none: tuple[int, ...] = ()) -> Tensor:
    if isinstance(x, Tensor):
        return torch.amin(x, () if axis is None else axis, keepdim=keepdims)
    return _over(x, none, lambda items: torch.amin(items, 0))


def _over(items: Iterable[Tensor], none: tuple[int, ...], reduce: Callable[[Tensor], Tensor]) -> Tensor:
    found = list(items)
    return reduce(torch.stack(found)) if found else torch.zeros(none)
