"""fast([(tree, x), ...]): a list of calls of a module that takes several arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import cortex


def node(word: int, *children: Any) -> SimpleNamespace:
    return SimpleNamespace(word=word, children=list(children))


class WithInputs(nn.Module):
    """A row of the request's tensor for every node, and two constants."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, node: Any, inputs: torch.Tensor, scale: float = 1.0, pair: bool = False) -> Any:
        h = inputs[node.word] * scale
        for child in node.children:
            below = self(child, inputs, scale, pair)
            h = h + self.inner(below[0] if pair else below)
        return (h, torch.relu(h)) if pair else h


@pytest.fixture
def module() -> WithInputs:
    torch.manual_seed(4)
    return WithInputs().eval()


CALLS = [
    (node(1, node(2), node(0)), torch.rand(3, 4)),
    (node(4), torch.rand(6, 4)),
    (node(0, node(1)), torch.rand(2, 4)),
]


def wanted(module: nn.Module, calls: list[Any]) -> torch.Tensor:
    with torch.no_grad():
        return torch.stack([module(*call) for call in calls])


def test_each_call_has_its_own_tensors(module: WithInputs) -> None:
    fast = cortex.compile(module, examples=CALLS[:1])
    torch.testing.assert_close(fast(CALLS), wanted(module, CALLS))
    assert torch.equal(fast(CALLS)[1], fast(*CALLS[1]))


def test_calls_with_other_constants_are_made_by_other_programs(module: WithInputs) -> None:
    fast = cortex.compile(module, examples=CALLS[:1])
    calls = [CALLS[0], (*CALLS[1], 3.0), CALLS[2], (*CALLS[0], 3.0)]
    torch.testing.assert_close(fast(calls), wanted(module, calls))
    with pytest.raises(cortex.StructureError, match="one program at a time"):
        fast.report(calls)


def test_results_of_different_forms_are_no_rows_of_one_tensor(module: WithInputs) -> None:
    fast = cortex.compile(module, examples=CALLS[:1])
    with pytest.raises(cortex.StructureError, match="different forms or shapes"):
        fast([CALLS[0], (*CALLS[1], 1.0, True)])


def test_structures_alone_where_the_rest_has_defaults() -> None:
    class Scaled(nn.Module):
        def forward(self, node: Any, scale: float = 2.0) -> torch.Tensor:
            return torch.tensor(float(node.word)) * scale + sum((self(c, scale) for c in node.children), 0.0)

    trees = [node(3, node(4)), node(5)]
    fast = cortex.compile(Scaled(), examples=trees)
    assert fast([trees[0], (trees[1], 10.0)]).tolist() == [14.0, 50.0]


def test_structures_that_are_tuples_are_structures() -> None:
    class Pairs(nn.Module):
        def forward(self, pair: Any, scale: float = 2.0) -> torch.Tensor:
            return torch.tensor(1.0) * scale if pair is None else self(pair[0], scale) + 3.0 * self(pair[1], scale)

    fast = cortex.compile(Pairs(), examples=[((None, (None, None)),)])
    assert fast([((None, None), None), (None, None)]).tolist() == [14.0, 8.0]
