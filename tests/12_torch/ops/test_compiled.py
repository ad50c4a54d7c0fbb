"""Torch code, traced and compiled, against torch: single precision, far from 0 and near it, and infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from frontend_meaning import Node
from torch import nn
from torch_meaning import tensors

import cortex
from cortex.frontend.torch.mode import symbolic, tracing_mode

torch.set_num_threads(1)


class Parts(nn.Module):
    """Modules with weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.embedding = nn.Embedding(7, 6)
        self.lstm = nn.LSTM(6, 5)
        self.gru = nn.GRUCell(6, 6)
        self.norm = nn.LayerNorm(6)
        self.bilinear = nn.Bilinear(6, 6, 4)


def compiled(function: Callable[[Parts, Any], Any], node: Node) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(1)
    module = Parts().eval()
    names = {id(p): name for name, p in module.named_parameters()}

    def traced(node: Any) -> Any:
        with tracing_mode(names):
            return tuple(symbolic(x) for x in tensors(function(module, node)))

    fast = cortex.compile(cortex.model(traced), dict(module.named_parameters()), examples=[node], check=False)
    found = fast(node)
    with torch.no_grad():
        expected = tensors(function(module, node))
    return [found[i] for i in range(len(expected))], [x.detach().numpy() for x in expected]


WIDE = torch.tensor([-90.0, -20.0, -4.0, -1.5, -0.3, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 0.2, 0.7, 2.0, 5.0, 18.0, 80.0])


def elementary(_: Parts, node: Any) -> Any:
    x = node.x
    return [*(getattr(F, name)(x) for name in ("elu", "gelu", "silu", "mish", "softplus")), torch.expm1(x)]


def positive(_: Parts, node: Any) -> Any:
    x = node.x.abs() + 1e-7
    return [torch.log1p(x), x.rsqrt(), x.sqrt(), x.log(), x**1.3, x.reciprocal(), x.log2()]


def reductions(_: Parts, node: Any) -> Any:
    x = node.x.view(4, 4)
    hidden = x.masked_fill(x > 1.0, float("-inf"))
    return [
        x.softmax(0), x.log_softmax(-1), F.softmax(hidden, 1), torch.logsumexp(hidden, 0), x.max(1).values, x.std(0),
        F.normalize(x, dim=1), torch.where(x > 0, x, -x).norm(dim=0), (x > 0).any(1), x.argmax(1),
    ]  # fmt: skip


def layers(m: Parts, node: Any) -> Any:
    word = m.embedding(torch.tensor([node.word]))
    rows = torch.stack([word, m.linear(word), torch.tanh(word)])
    output, (h, c) = m.lstm(rows)
    state = m.gru(word, h[0, :, :1].expand(1, 6))
    hot = F.one_hot(torch.tensor(node.word), 7).float() @ m.embedding.weight
    return [output, c, m.norm(state), m.bilinear(word, state), hot, m.embedding.weight[node.word]]


def in_place(m: Parts, node: Any) -> Any:
    rows = torch.zeros(3, 6)
    for i in range(3):
        rows[i] = m.embedding(torch.LongTensor([node.word, i]))[1]
    rows[1:] += m.embedding.weight[node.word]
    rows.t()[0].mul_(2.0)
    rows[0] = rows[2].relu_()
    return [rows, rows.sum(0)]


CASES = {
    "elementary": elementary,
    "positive": positive,
    "reductions": reductions,
    "layers": layers,
    "in_place": in_place,
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_as_torch(name: str) -> None:
    found, expected = compiled(CASES[name], Node(x=WIDE, word=4))
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=5e-6, atol=2e-6)


def test_digits_near_zero_are_kept() -> None:
    """Relative, not absolute: what is tiny stays as exact as torch has it."""
    tiny = torch.tensor([-1e-4, -1e-6, 1e-6, 1e-4, 3e-3, -3e-3])
    found, expected = compiled(
        lambda _, n: [torch.erf(n.x), torch.expm1(n.x), F.elu(n.x), torch.log1p(n.x)], Node(x=tiny)
    )
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6)
