"""Methods of nodes that cannot be traced (NumPy's arrays, values in control flow) are asked of the real nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cortex

D, H = 6, 4


class Part:
    def __init__(self, box: Any, *parts: Part) -> None:
        self.box, self.parts = box, list(parts)
        self.h: Any = None

    def unit(self) -> Any:
        """A direction by NumPy."""
        x = self.box.cpu().numpy().squeeze()
        return torch.from_numpy((x / np.linalg.norm(x)).astype(np.float32)).view(1, -1)

    def turned(self, sign: int) -> Any:
        """By another method, with a constant."""
        return self.unit().flip(1) * sign

    def positive(self) -> Any:
        """A value decides."""
        return self.box if self.box.sum().item() > 0 else -self.box

    def is_wide(self) -> bool:
        """A value of Python, which decides in the module."""
        return bool(self.box.max() > 1)

    def stored(self) -> Any:
        """What the module stores, by NumPy."""
        return torch.from_numpy(self.h.numpy() * 2)

    def stored_by_another(self) -> Any:
        """The same by a function."""
        return doubled(self)


def doubled(node: Any) -> Any:
    return torch.from_numpy(node.h.numpy() * 2)


def part(seed: int, *parts: Part) -> Part:
    return Part(torch.randn(1, D, generator=torch.Generator().manual_seed(seed)), *parts)


def chain(depth: int) -> Part:
    return part(depth) if depth == 0 else part(depth, chain(depth - 1))


EXAMPLES = [part(1, part(2), part(3, part(4))), part(5, part(6), part(7), part(8))]
OTHERS = [part(9), chain(12), part(10, *map(part, range(20, 29)))]


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.wide = nn.Linear(D + H, H), nn.Linear(D + H, H)

    def taken(self, node: Any) -> Any:
        return node.unit()

    def forward(self, node: Any) -> Any:
        below = sum((self(each) for each in node.parts), torch.zeros(1, H))
        return torch.tanh(self.cell(torch.cat([self.taken(node), below], dim=1)))


class OfAnother(Encoder):
    def taken(self, node: Any) -> Any:
        return node.turned(-1)


class Decided(Encoder):
    def taken(self, node: Any) -> Any:
        return node.positive()


class Deciding(Encoder):
    def forward(self, node: Any) -> Any:
        below = sum((self(each) for each in node.parts), torch.zeros(1, H))
        cell = self.wide if node.is_wide() else self.cell
        return torch.tanh(cell(torch.cat([node.box, below], dim=1)))


@pytest.mark.parametrize("module", [Encoder, OfAnother, Decided, Deciding])
def test_the_real_node_is_asked(module: type[nn.Module]) -> None:
    torch.manual_seed(2)
    model = module().eval()
    with torch.no_grad():
        fast = cortex.compile(model, examples=EXAMPLES)
        for tree in [*EXAMPLES, *OTHERS]:
            torch.testing.assert_close(fast(tree), model(tree), rtol=1e-4, atol=1e-5)


class Stores(Encoder):
    """The real node holds nothing yet when the method would be asked."""

    def up(self, node: Any) -> Any:
        below = sum((self.up(each) for each in node.parts), torch.zeros(1, H))
        node.h = torch.tanh(self.cell(torch.cat([node.box, below], dim=1)))
        return node.stored()

    def forward(self, node: Any) -> Any:
        return self.up(node)


class StoresForAnother(Stores):
    def up(self, node: Any) -> Any:
        node.h = torch.tanh(self.wide(torch.cat([node.box, torch.zeros(1, H)], dim=1)))
        return node.stored_by_another()


@pytest.mark.parametrize("module", [Stores, StoresForAnother])
def test_what_the_module_stores_is_never_asked_of_the_real_node(module: type[nn.Module]) -> None:
    with torch.no_grad(), pytest.raises(cortex.ModelError, match=r"cannot leave torch|reads what the module stores"):
        cortex.compile(module().eval(), examples=EXAMPLES, check=False)
