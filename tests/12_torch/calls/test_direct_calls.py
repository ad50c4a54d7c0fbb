"""Calls that are made by one native call give what the long way gives, and leave to it what is unlike them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from nodes import Node
from torch import nn

import cortex
from cortex.runtime.direct_call import never

H = 8


class Scaled(nn.Module):
    """A node, a constant and a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.inner = nn.Embedding(12, H), nn.Linear(H, H)

    def encode(self, node: Any) -> Any:
        below = sum((self.encode(k) for k in node.children), torch.zeros(H))
        return torch.tanh(self.embedding(torch.tensor(node.word)) + self.inner(below))

    def forward(self, node: Any, bias: Any, double: bool = False, name: str = "h") -> Any:
        h = self.encode(node) + bias[0]
        return {name: h + h, "n": h} if double else h


class Plain(nn.Module):
    """A node and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.inner = nn.Embedding(12, H), nn.Linear(H, H)

    def forward(self, node: Any) -> Any:
        below = [self(k) for k in node["kids"] if k is not None]
        return torch.tanh(self.embedding(torch.tensor(node["word"])) + self.inner(sum(below, torch.zeros(H))))


class Other(Node):
    """Nodes of another class."""


def tree(kind: type = Node) -> Any:
    return kind(1, [kind(2), kind(3, [kind(4), kind(5)])])


def direct(fast: Any) -> Any:
    """What the last call was made by."""
    return fast._last.in_memory.direct


@pytest.fixture
def scaled() -> tuple[nn.Module, Any]:
    torch.manual_seed(3)
    module = Scaled().eval()
    return module, cortex.compile(module, examples=[(tree(), torch.ones(2, H))])


def test_calls_of_all_forms_give_what_the_module_gives(scaled: tuple[nn.Module, Any]) -> None:
    module, fast = scaled
    t, b = tree(), torch.rand(3, H)
    calls: list[tuple[Any, ...]] = [(t, b), (t, b, True), (t, b, False), (t, b, True, "h"), (t, b, True, "g"), (t, b)]
    calls += [(tree(Other), b), (t, b.numpy()), (t, b), (Node(7), b), (t, nn.Parameter(b))]
    with torch.no_grad():
        for call in calls * 2:
            want, got = module(*call[:1], torch.as_tensor(call[1]), *call[2:]), fast(*call)
            assert type(got) is type(want)
            for a, c in zip(*((x.values() if isinstance(x, dict) else [x]) for x in (got, want)), strict=True):
                torch.testing.assert_close(a, c)
        assert direct(fast) is not never
        torch.testing.assert_close(fast(t, b), fast(node=t, bias=b))


def test_results_are_the_callers_own(scaled: tuple[nn.Module, Any]) -> None:
    _, fast = scaled
    t, b = tree(), torch.zeros(1, H)
    with torch.no_grad():
        first = fast(t, b)
        kept = first.clone()
        second = fast(Node(2, [tree()]), b)
        assert torch.equal(first, kept) and not torch.equal(first, second)
        first += 1
        assert torch.equal(fast(t, b), kept)


def test_arguments_that_do_not_fit_are_refused_as_ever(scaled: tuple[nn.Module, Any]) -> None:
    _, fast = scaled
    with torch.no_grad():
        fast(tree(), torch.zeros(1, H))
        for wrong in [(), (tree(),), (tree(), torch.zeros(1, H), False, "h", 1)]:
            with pytest.raises(cortex.StructureError, match="call of Scaled"):
                fast(*wrong)
        with pytest.raises(cortex.CortexError):
            fast(Node(None), torch.zeros(1, H))
        assert fast(tree(), torch.zeros(1, H)).shape == (H,)


def test_new_weights_and_new_kinds_are_seen() -> None:
    torch.manual_seed(3)
    module = Plain().eval()
    small = {"word": 1, "kids": [{"word": 2, "kids": []}]}
    fast = cortex.compile(module, examples=[small])
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(fast(small), module(small))
        assert direct(fast) is not never
        module.inner.weight.mul_(2)
        fast.update(module)
        torch.testing.assert_close(fast(small), module(small))
        torch.testing.assert_close(fast(small), module(small))
        other = {"word": 1, "kids": [None, small, {"word": 3, "kids": [None]}]}
        for each in (other, small, other):
            torch.testing.assert_close(fast(each), module(each))
        assert fast([small, small]).shape == (2, H)


def test_a_loaded_module_is_called_directly_too(tmp_path: Any) -> None:
    torch.manual_seed(3)
    module = Plain().eval()
    small = {"word": 1, "kids": [{"word": 2, "kids": []}]}
    cortex.compile(module, examples=[small]).save(tmp_path / "m.cortex")
    fast = cortex.load(tmp_path / "m.cortex")
    with torch.no_grad():
        for _ in range(3):
            np.testing.assert_allclose(np.asarray(fast(small)), module(small).numpy(), rtol=1e-4, atol=1e-5)
    assert direct(fast) is not never
