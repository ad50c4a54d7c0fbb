"""Views and changes in place: random programs in which many tensors share elements, against torch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_operators import drawn
from torch_meaning import agrees

View = Callable[[Any, random.Random], Any]

VIEWS: tuple[View, ...] = (
    lambda x, r: x.view(-1) if x.is_contiguous() else x.reshape(-1),
    lambda x, r: x.reshape(x.size(-1), -1),
    lambda x, r: x.t() if x.dim() <= 2 else x.transpose(0, 1),
    lambda x, r: x.transpose(0, -1),
    lambda x, r: x.unsqueeze(r.choice([0, -1])) if x.dim() < 4 else x,
    lambda x, r: x.squeeze(),
    lambda x, r: x[r.randrange(x.size(0))] if x.dim() > 1 else x,
    lambda x, r: x[: r.randint(1, x.size(0))],
    lambda x, r: x[..., r.randrange(x.size(-1)) :],
    lambda x, r: x[::2],
    lambda x, r: x.flatten(),
    lambda x, r: x.detach(),
    lambda x, r: x.chunk(2, -1)[-1],
    lambda x, r: x.unbind(0)[-1] if x.dim() > 1 else x,
    lambda x, r: x.contiguous(),
    lambda x, r: x.clone(),
    lambda x, r: x + 1,
)


def _set_row(x: Any, r: random.Random) -> None:
    x[r.randrange(x.size(0))] = r.random()


def _set_part(x: Any, r: random.Random) -> None:
    x[..., r.randrange(x.size(-1)) :] *= 2


CHANGES: tuple[Callable[[Any, random.Random], Any], ...] = (
    lambda x, r: x.add_(r.random()),
    lambda x, r: x.mul_(0.5),
    lambda x, r: x.sub_(x.mean()),
    lambda x, r: x.zero_(),
    lambda x, r: x.copy_(x.flip(0)),
    lambda x, r: x.tanh_(),
    lambda x, r: x.clamp_(-0.5, 0.5),
    lambda x, r: x.masked_fill_(x > 0.3, 0.1),
    lambda x, r: x.neg_(),
    _set_row,
    _set_part,
)


def program(seed: int, x: Any, y: Any) -> list[Any]:
    """Choices depend on the seed and on shapes only."""
    r = random.Random(seed)
    pool = [x, y]
    for _ in range(12):
        if r.random() < 0.6:
            made = r.choice(VIEWS)(r.choice(pool), r)
            if made.dim() and made.numel():
                pool.append(made)
        else:
            r.choice(CHANGES)(r.choice(pool), r)
    return pool


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int) -> None:
    agrees(lambda x, y: program(seed, x, y), drawn({"x": (3, 4), "y": (2, 2, 3)}, seed))


def _shapes_in_place(x: Any) -> Any:
    x.unsqueeze_(0)
    x.transpose_(1, 2)
    x.squeeze_(0).t_()
    y = x[0]
    y += 1
    return x, y


def test_shapes_changed_in_place() -> None:
    agrees(_shapes_in_place, drawn({"x": (3, 4)}, 1))


def test_item_of_slices() -> None:
    def fill(x: Any) -> Any:
        h = torch.zeros(4, 2)
        for i in range(4):
            h[i] += x[i, :2]
            h[i, 0] *= 2
        return h, h.sum(0)

    agrees(fill, drawn({"x": (4, 3)}, 2))


def _data_unsqueezed(x: Any) -> Any:
    y = x.data.unsqueeze_(0)
    y.mul_(2)
    return x + 1, y @ y.transpose(1, 2), x.shape


def _detached_transposed(x: Any) -> Any:
    y = x.detach()
    y.t_()
    y[0] = 5.0
    return x @ x.t(), y + 1, y.is_contiguous()


def _data_of_a_view(x: Any) -> Any:
    y = x[1:].data
    y.transpose_(0, 1).unsqueeze_(-1)
    y.data.squeeze_(-1).fill_(3.0)
    return x, y, x.sum(0)


def _data_of_truth(x: Any) -> Any:
    b = x > 0
    b.data.unsqueeze_(0).logical_not_()
    return b, b & (x < 1), torch.where(b, x, 0.0)


@pytest.mark.parametrize("function", [_data_unsqueezed, _detached_transposed, _data_of_a_view, _data_of_truth])
def test_data_and_detach_share_elements_but_not_their_shape(function: Callable[..., Any]) -> None:
    agrees(function, drawn({"x": (3, 4)}, 3))
