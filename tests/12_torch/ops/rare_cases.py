"""Operators that few modules use: ordinary arguments, odd shapes, special values, other element types."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from case import Case, V, X, case, positive, whole


def odd(*_: Any) -> torch.Tensor:
    """Zeros of both signs, infinities and NaN among ordinary numbers."""
    return torch.tensor([[0.0, -0.0, math.inf, 2.0], [-math.inf, math.nan, -1.5, 0.5], [1.0, 1.0, -0.0, 0.0]])


def truths(*_: Any) -> torch.Tensor:
    return torch.tensor([[True, False, True, True], [False, False, True, False], [True, True, True, True]])


def _index_put(x: Any, i: Any) -> Any:
    rows = torch.stack([i, (i + 1) % 3])
    return (
        torch.index_put(x, (rows,), torch.tensor(2.0)),
        torch.index_put(x, (torch.tensor([0, 0]),), x[:2] + 1, accumulate=True),
        x.index_put((torch.tensor([2, 0]),), x[:2]),
    )


RARE: dict[str, Case] = {
    "weight_norm": case(
        lambda x, v, g: (
            torch._weight_norm(v, g, 0),
            torch._weight_norm(x, g[:3].unsqueeze(1), 0),
            torch._weight_norm(x, g.unsqueeze(0), 1),
            torch._weight_norm(x, g[0], -1),
            torch._weight_norm(torch.stack([x, 2 * x]), g[:3].reshape(1, 3, 1), 1),
        ),
        x=X,
        v=(4,),
        g=positive(4),
    ),
    **{
        f"hyperbolic {name}": case(
            lambda x, y, s, name=name: (getattr(torch, name)(x), getattr(torch, name)(y), getattr(torch, name)(s)),
            x=positive(3, 4),
            y=odd,
            s=(1, 0, 2),
        )
        for name in ("acosh", "asinh", "atanh")
    },
    "hypot": case(lambda x, y, z: (torch.hypot(x, y), torch.hypot(z, y), x.hypot(x)), x=X, y=(3, 1), z=odd),
    "integers of nodes": case(
        lambda i, j: (i // 2, torch.remainder(i, 3), i % 2 + j, torch.floor_divide(j, 2), (i - 5) // 3, (i - 5) % 3),
        i=whole(below=9),
        j=whole(below=9),
    ),
    "running sums": case(
        lambda x, v, t: (x.cumsum(0), v.cumprod(0), (t > 0).cumsum(1, dtype=torch.float32), x[:0].cumsum(0)),
        x=X,
        v=V,
        t=truths,
    ),
    "running values of odd numbers": case(lambda x: (x.cumsum(-1), x.cumprod(0), x[0, 0].cumsum(0)), x=odd),
    "count_nonzero": case(
        lambda x, y, t: (
            x.count_nonzero(),
            y.count_nonzero(1),
            y.count_nonzero((0, 1)),
            (t > 0).count_nonzero(0),
        ),
        x=X,
        y=odd,
        t=truths,
    ),
    "aminmax": case(
        lambda x, y: (x.aminmax(), x.aminmax(dim=1), torch.aminmax(y, dim=0, keepdim=True), x[0, 0].aminmax()),
        x=X,
        y=odd,
    ),
    "addbmm": case(
        lambda m, x, y: (torch.addbmm(m, x, y), m.addbmm(x, y, beta=0, alpha=2), m[:1].addbmm(x, y, beta=0.5)),
        m=(3, 2),
        x=(2, 3, 4),
        y=(2, 4, 2),
    ),
    "cdist": case(
        lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, p=1), torch.cdist(x, y, p=math.inf), torch.cdist(x[:1], x)),
        x=X,
        y=(2, 4),
    ),
    "convolution": case(
        lambda x, w, b: (
            F.conv1d(x, w, b),
            F.conv1d(x, w, stride=2, padding=1),
            F.conv1d(x[0], w, b, dilation=2),
            F.conv2d(x[:, :, None], w[:, :, None], b, padding=(0, 1)),
        ),
        x=(2, 3, 7),
        w=(4, 3, 2),
        b=(4,),
    ),
    "convolution in groups": case(
        lambda x, w: (F.conv1d(x, w, groups=4), F.conv1d(x, w, groups=4, padding="same")), x=(1, 4, 5), w=(4, 1, 3)
    ),
    "pooling": case(
        lambda x: (
            F.avg_pool1d(x, 2),
            F.avg_pool2d(x[None], 2, stride=1, padding=1),
            F.max_pool2d(x[None], (1, 2)),
            F.max_pool2d(x[None], 2, return_indices=True),
            F.max_pool1d(x, 3, stride=2, padding=1),
        ),
        x=(2, 4, 5),
    ),
    "pooling of odd numbers": case(lambda x: (F.max_pool2d(x[None], 2, stride=1), F.avg_pool1d(x, 2)), x=odd),
    "adaptive pooling": case(
        lambda x: (
            F.adaptive_avg_pool1d(x, 3),
            F.adaptive_avg_pool2d(x, (2, 3)),
            F.adaptive_avg_pool2d(x[None], 1),
            F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
            F.adaptive_max_pool1d(x, 2),
        ),
        x=(2, 4, 5),
    ),
    "diagonal": case(
        lambda x, t: (x.diagonal(), x.diagonal(1), torch.diagonal(x, -2, 1, 0), (t > 0).diagonal(), x.diagonal(9)),
        x=X,
        t=truths,
    ),
    "unfold": case(lambda x, v, t: (x.unfold(1, 2, 1), v.unfold(0, 3, 2), (t > 0).unfold(0, 1, 2)), x=X, v=V, t=truths),
    "indices as tensors": case(
        lambda x, i: (
            x[torch.stack([i, i])],
            x[:, torch.tensor([[0, 3], [1, -1]])],
            torch.ops.aten.index(x, [torch.stack([i, i])]),
            torch.ops.aten._unsafe_index(x, [None, torch.tensor([2, 0])]),
        ),
        x=X,
        i=whole(),
    ),
    "index_add": case(
        lambda x, y, i: (
            x.index_add(0, torch.stack([i, i]), y),
            torch.index_add(x, 1, torch.tensor([3]), y[:, :1].repeat(2, 1)[:3], alpha=2),
            x.clone().index_add_(0, torch.tensor([2, 0]), y),
        ),
        x=X,
        y=(2, 4),
        i=whole(),
    ),
    "index_copy": case(
        lambda x, y, i: (x.index_copy(0, torch.stack([i, (i + 1) % 3]), y), x.index_fill(1, torch.tensor([1, 2]), 7.0)),
        x=X,
        y=(2, 4),
        i=whole(),
    ),
    "index_put": case(_index_put, x=X, i=whole()),
    "scatter_add": case(
        lambda x, y: (
            x.scatter_add(0, torch.tensor([[0, 1, 2, 0], [0, 0, 2, 1]]), y),
            x.scatter_reduce(0, torch.tensor([[0, 1, 2, 0], [0, 0, 2, 1]]), y, "amax"),
            x.scatter_reduce(0, torch.tensor([[0, 1, 2, 0], [0, 0, 2, 1]]), y, "sum"),
            x[0].scatter_reduce(0, torch.tensor([3, 3]), y[0, :2], "prod"),
        ),
        x=X,
        y=(2, 4),
    ),
    "scatter_add of odd numbers": case(
        lambda x, y: (x.scatter_add(1, torch.tensor([[0], [1], [3]]), y), x.scatter_reduce(
            1, torch.tensor([[0], [1], [3]]), y, "amin")),
        x=odd,
        y=(3, 1),
    ),
    "copies": case(
        lambda x, t: (
            torch.ops.aten._to_copy(x),
            torch.ops.aten._to_copy(t > 0, dtype=torch.float32),
            torch.ops.aten._to_copy(x, dtype=torch.bool),
            torch.ops.aten._unsafe_view(x, [4, 3]),
        ),
        x=odd,
        t=truths,
    ),
    "repeat_interleave by constants": case(
        lambda x: (
            x.repeat_interleave(torch.tensor([2, 0, 1]), 0),
            x.repeat_interleave(torch.tensor([2]), 1),
            x[0].repeat_interleave(torch.tensor([0, 1, 0, 3])),
            x.repeat_interleave(torch.tensor([0, 0, 0]), dim=0),
        ),
        x=odd,
    ),
    "embedding_bag": case(
        lambda w, i, j: tuple(
            F.embedding_bag(torch.stack([torch.stack([i, j]), torch.stack([j, j])]), w, mode=mode)
            for mode in ("mean", "sum", "max")
        ),
        w=X,
        i=whole(),
        j=whole(),
    ),
}  # fmt: skip
