"""Results of modules have torch's element types, and so do results of calls within them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import cortex


class Node:
    def __init__(self, word: int, *kids: Node) -> None:
        self.word = word
        self.kids = list(kids)


def tree() -> Node:
    return Node(0, Node(1, Node(2), Node(3), Node(4)), Node(2), Node(3, Node(1)))


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.emb = nn.Embedding(5, 4)

    def own(self, node: Any) -> Any:
        return self.emb(torch.tensor(node.word))


class Masks(Base):
    """Sums of truth values are truth values; joined ones, too."""

    def forward(self, node: Any) -> Any:
        mask = self.own(node) > 0
        for kid in node.kids:
            mask = mask + self(kid)["mask"]
        both = torch.cat([mask, ~mask])
        return {
            "mask": mask, "both": both, "rows": torch.stack([mask, ~mask]), "all": both.any() & ~both.all(),
            "beside": torch.cat([mask, self.own(node)]), "floats": both.float(), "count": both.sum(),
        }  # fmt: skip


class Positions(Base):
    """Integers are added up along the tree."""

    def forward(self, node: Any) -> Any:
        h = self.own(node)
        best = h.argmax()
        for kid in node.kids:
            other, at = self(kid)
            h, best = h + other, best + at
        return h, best


class Stored(Base):
    def forward(self, node: Any) -> Any:
        self.mark(node)
        return node.on, node.on.sum(), (node.on & (self.own(node) < 1)).int()

    def mark(self, node: Any) -> None:
        for kid in node.kids:
            self.mark(kid)
        on = self.own(node) > 0
        for kid in node.kids:
            on = on ^ kid.on
        node.on = on


class PassedDown(Base):
    def forward(self, node: Any) -> Any:
        return self.down(node, self.emb.weight[0] > 0)

    def down(self, node: Any, mask: Any) -> Any:
        h = torch.where(mask, self.own(node), 0.0)
        for kid in node.kids:
            h = h + self.down(kid, ~mask)
        return h


MODULES = (Masks, Positions, Stored, PassedDown)


@pytest.mark.parametrize("make", MODULES)
def test_results_have_torchs_types(make: type[Base], tmp_path: Path) -> None:
    module = make().eval()
    fast = cortex.compile(module, examples=[tree()])
    for given in (tree(), Node(2), Node(1, Node(0))):
        with torch.no_grad():
            expected = module(given)
        torch.testing.assert_close(fast(given), expected)
    fast.save(tmp_path / "model.cortex")
    loaded = cortex.load(tmp_path / "model.cortex")(tree())
    now = fast(tree())
    names = now.keys() if isinstance(now, dict) else range(len(now)) if isinstance(now, tuple) else None
    for name in names or ():
        assert str(torch.as_tensor(loaded[name]).dtype) == str(now[name].dtype)


def test_results_at_nodes_have_torchs_types() -> None:
    given, module = tree(), Masks().eval()
    found = cortex.compile(module, examples=[given]).nodes(given)
    with torch.no_grad():
        for node, result in found:
            torch.testing.assert_close(result, module(node))
    assert found.result["mask"].dtype is torch.bool


class LeafIsWhole(Base):
    """One call returns an integer and another a float: what the module returns is a float."""

    def forward(self, node: Any) -> Any:
        if not node.kids:
            return torch.tensor(1)
        return torch.stack([self(kid) for kid in node.kids]).float().sum() / 2


def test_integers_and_floats_mixed_are_floats() -> None:
    fast = cortex.compile(LeafIsWhole().eval(), examples=[tree()])
    assert fast(Node(1)).dtype is torch.float32
    torch.testing.assert_close(fast(tree()), LeafIsWhole()(tree()))
