"""Fields of nodes in torch code: indices wrapped on the way in, tensors, arrays, lists of numbers, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from frontend_meaning import Node, evaluate
from torch import nn
from torch.autograd import Variable
from torch_meaning import tensors

import cortex
from cortex.frontend.torch.mode import symbolic, tracing_mode
from cortex.frontend.trace import Trace
from cortex.ra.ir import Equals, IsNone

E = nn.Embedding(9, 4)


def node(word: int) -> Node:
    return Node(
        word=word,
        one=torch.tensor([word]),
        zero=torch.tensor(word),
        x=torch.arange(4.0) + word,
        row=[0.5, 1.0, 2.0, float(word)],
        z=word / 4,
        a=np.full(4, word, np.float32),
        count=word + 1,
        tag="even" if word % 2 == 0 else "odd",
    )


NODES = [node(3), node(8), node(0)]


def _hot(n: Any) -> Any:
    v = torch.zeros(9)
    v[n.word] = 1
    return v


NAMES = {id(E.weight): "weight"}

FIELDS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda n: E(torch.tensor([n.word])),
    "tensor_scalar": lambda n: E(torch.tensor(n.word)),
    "tensor_dtype": lambda n: E(torch.tensor(n.word, dtype=torch.long)).unsqueeze(0),
    "tensor_device": lambda n: E(torch.tensor([n.word], dtype=torch.long, device=E.weight.device)),
    "nested": lambda n: E(torch.tensor([[n.word, 2], [0, n.word]])),
    "LongTensor": lambda n: E(torch.LongTensor([n.word])),
    "LongTensor_several": lambda n: E(torch.LongTensor([n.word, 4, n.word])),
    "LongTensor_moved": lambda n: E(torch.LongTensor([n.word]).to("cpu").unsqueeze(0).view(1)),
    "Variable": lambda n: E(Variable(torch.LongTensor([n.word]))) + Variable(torch.zeros(1, 4)),
    "one_element": lambda n: E(n.one),
    "zero_axes": lambda n: E(n.zero.unsqueeze(0)),
    "stacked": lambda n: E(torch.stack([n.zero, torch.tensor(1)])),
    "rows": lambda n: (E.weight[n.word], E.weight[[n.word, 2]], E.weight[n.one], E.weight[n.word, 1:3]),
    "index_select": lambda n: torch.index_select(E.weight, 0, n.one),
    "constant_table": lambda n: torch.eye(9)[n.word],
    "one_hot": lambda n: (F.one_hot(torch.tensor(n.word), 9).float() @ E.weight, F.one_hot(n.one, 9)),
    "scatter": lambda n: torch.zeros(9).scatter_(0, torch.tensor([n.word]), 1.0),
    "set_at": _hot,
    "whole_as_float": lambda n: torch.tensor([n.word]).float() * n.x,
    "torch_field": lambda n: (n.x * 2 + n.x.sum(), 1 - n.x, n.x[1:], n.x.unsqueeze(0), n.x > 1, -n.x),
    "torch_field_more": lambda n: (2 / (n.x + 1), n.x @ n.x, n.x**2, n.x == n.x, abs(n.x), +n.x),
    "attributes": lambda n: (torch.zeros(n.x.shape), torch.zeros(n.x.size(0)), torch.zeros(len(n.x))),
    "iterated": lambda n: torch.stack([v * 2 for v in n.x]),
    "function_of_field": lambda n: (torch.tanh(n.x), F.relu(n.x), torch.cat([n.x, n.x])),
    "list_of_numbers": lambda n: (torch.tensor(n.row) + n.x, torch.tensor(n.row) @ E.weight.t()),
    "array": lambda n: (torch.as_tensor(n.a) + 1, torch.tensor(n.a) * n.x),
    "numbers": lambda n: (torch.tensor([n.z]) + n.x, n.x * n.z, n.z * n.x, n.x / n.count, torch.tensor([n.z, 1.0])),
    "FloatTensor": lambda n: (torch.FloatTensor([n.z, 2.0]) * 3, torch.Tensor([n.z])),
    "FloatTensor_of_list": lambda n: (torch.FloatTensor(n.row) + n.x, torch.FloatTensor([n.row, n.row]) * 2),
    "tag": lambda n: n.x + 1 if n.tag == "even" else -n.x,
    "parameter_iterated": lambda n: torch.stack([row * n.z for row in E.weight]),
    "parameter_itself": lambda n: (E.weight, E.weight.data, E.weight.detach().t()),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_field(name: str) -> None:
    """One trace of several nodes: nothing of the first one's values may stay in it."""
    written = FIELDS[name]

    def f(node: Any) -> Any:
        with tracing_mode(NAMES):
            return tuple(symbolic(x) for x in tensors(written(node)))

    trace = Trace(cortex.model(f), {"weight": E.weight})
    for node in NODES:
        found = evaluate(trace, node).values()
        for x, y in zip(found, tensors(written(node)), strict=True):
            np.testing.assert_allclose(x, y.detach().numpy(), rtol=1e-5, atol=1e-5)
    asked = {type(fact.test) for kind in trace.model().kinds for fact in kind.guard}
    assert asked <= ({IsNone, Equals} if name == "tag" else {IsNone}), "no value of a field decided anything"


def test_real_tensors_are_constants_by_content() -> None:
    """Each trace makes new ones, and the model has each of them once."""

    def f(node: Any) -> Any:
        with tracing_mode({}):
            scale = torch.tensor([1.0, 2.0, 3.0, 4.0])
            return symbolic(node.x * scale if node.tag == "even" else node.x + scale)

    trace = Trace(cortex.model(f))
    trace.see(NODES)
    assert [p.name for p in trace.model().params] == ["const_0"]


def test_parameters_keep_their_names() -> None:
    linear = nn.Linear(4, 2)
    names = {id(p): f"inner.{name}" for name, p in linear.named_parameters()}

    def f(node: Any) -> Any:
        with tracing_mode(names):
            return symbolic(linear(node.x) * linear.weight.data.sum())

    trace = Trace(cortex.model(f), {f"inner.{name}": p for name, p in linear.named_parameters()})
    trace.see(NODES)
    assert sorted(p.name for p in trace.model().params) == ["inner.bias", "inner.weight"]
