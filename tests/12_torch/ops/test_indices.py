"""Indices from fields of nodes, where torch refuses some: a value outside the axis is a StructureError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from frontend_meaning import Node
from torch import nn

import cortex

V = torch.arange(5.0)
USES: dict[str, Callable[[Any], Any]] = {
    "weight": lambda at: V[at],
    "embedding": lambda at: F.embedding(at, V.view(5, 1), padding_idx=0),
    "index_select": lambda at: V.index_select(0, at.view(1)),
    "gather": lambda at: V.gather(0, at.view(1)),
    "scatter": lambda at: V.scatter(0, at.view(1), 9.0),
    "one_hot": lambda at: F.one_hot(at, 5).float(),
    "class": lambda at: F.nll_loss(V.view(1, 5), at.view(1)),
}


class Uses(nn.Module):
    def forward(self, node: Any) -> Any:
        at = torch.tensor(node.at)
        changed = torch.zeros(5)
        changed[at] = -1.0
        row = torch.ones(5)
        row[torch.tensor([node.at, 1])] = 7.0
        return [use(at) for use in USES.values()], changed, row


def test_every_use_of_an_index() -> None:
    module = Uses()
    fast = cortex.compile(module, examples=[Node(at=2)])
    for at in (0, 4):
        for x, y in zip(fast(Node(at=at))[0], module(Node(at=at))[0], strict=True):
            torch.testing.assert_close(x, y)
        for x, y in zip(fast(Node(at=at))[1:], module(Node(at=at))[1:], strict=True):
            torch.testing.assert_close(x, y)


def _setting(at: Any) -> Any:
    changed = torch.zeros(5)
    changed[at] = -1.0
    return changed


@pytest.mark.parametrize("use", [*USES.values(), _setting], ids=[*USES, "set"])
def test_an_index_outside_is_refused(use: Callable[[Any], Any]) -> None:
    class One(nn.Module):
        def forward(self, node: Any) -> Any:
            return use(torch.tensor(node.at))

    fast = cortex.compile(One(), examples=[Node(at=2)])
    for at in (-1, 5, 2**31 + 1):
        outside = rf"(field 'at'|node\.at) is {at}; it must be an integer from 0 to 4"
        with pytest.raises(cortex.StructureError, match=rf"{outside}|the integer {at} is computed with as float32"):
            fast(Node(at=at))
