"""Torch code that cannot be compiled: one golden text each, with the operator, the user's line and a remedy."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from frontend_meaning import Node
from torch import nn

import cortex
from cortex.frontend.torch.mode import tracing_mode
from cortex.frontend.trace import Trace

BODIES = {
    # operators without a counterpart
    "sort": "values, order = torch.sort(x)\nreturn values",
    "topk": "return x.topk(2).values",
    "argsort": "return x[x.argsort()]",
    "median": "return x.median()",
    "unique": "return torch.unique(x)",
    "nonzero": "return x.nonzero()",
    "masked_select": "return torch.masked_select(x, x > 0)",
    "index_by_mask": "return x[x > 0]",
    "index_by_computed": "return x[w.view(-1).argmax()]",
    "index_beyond_computed": "return x[x.argmax() + 1]",
    "index_by_numbers_of_a_list": "return F.embedding(torch.tensor(node.x), w)",
    "index_by_list_of_tensors": "return x[[x.argmax(), x.argmin()]]",
    "sin": "return torch.sin(x)",
    "floor": "return x.floor()",
    "floor_divide": "return x // 2",
    "modulo": "return x % 2",
    "shift": "return node.word << x.argmax()",
    "rounding_mode": "return torch.div(x, 2, rounding_mode='floor')",
    "inverse": "return torch.inverse(w)",
    "svd": "u, s, v = torch.linalg.svd(w)\nreturn s",
    "power_of_tensor": "return x ** x",
    "one_hot_without_classes": "return F.one_hot(node.word)",
    "repeats_of_a_node": "return x.repeat_interleave(torch.stack([torch.tensor(node.word)] * 4))",
    "max_norm": "return F.embedding(node.word, w, max_norm=1.0)",
    "nuclear_norm": "return torch.norm(w, p='nuc')",
    # indices that an axis lacks
    "embedding_outside": "return F.embedding(torch.tensor(10_000), w)",
    "embedding_negative": "return F.embedding(torch.tensor([1, -1]), w)",
    "index_select_outside": "return x.index_select(0, torch.tensor([4]))",
    "gather_negative": "return x.gather(0, torch.tensor([-1]))",
    "scatter_outside": "return x.scatter(0, torch.tensor([7]), 1.0)",
    "index_by_list_outside": "return w[[0, -5]]",
    "index_outside": "return x[4]",
    "set_outside": "x[torch.tensor([4])] = 1.0\nreturn x",
    "class_outside": "return F.nll_loss(w, torch.tensor([0, 1, 2, 4]))",
    "class_ignored": "return F.cross_entropy(w, torch.tensor([0, 1, 2, -100]))",
    "grouped_attention": "q = w.view(1, 4, 4)\nreturn F.scaled_dot_product_attention(q, q, q, enable_gqa=True)",
    # control flow and Python values
    "if_tensor": "if x.sum() > 0:\n    return x\nreturn -x",
    "while_tensor": "while x.norm() > 1:\n    x = x / 2\nreturn x",
    "and_tensors": "return x if (x > 0).all() and True else -x",
    "item": "return x * x.max().item()",
    "float": "return x * float(x.sum())",
    "int_of_parameter": "return x[: int(scale)]",
    "tolist": "return torch.tensor(x.tolist())",
    "numpy": "return torch.tensor(x.numpy())",
    "numpy_function": "return np.tanh(x)",
    "numpy_of_field": "return torch.tensor(np.log1p(np.abs(node.x)))",
    "numpy_of_fields": "return np.hypot(node.x, node.x)",
    "numpy_array": "return torch.tensor(np.asarray(node.x))",
    "math": "return math.log(x.sum()) * x",
    "fmod": "return torch.fmod(x, 2.0)",
    "round": "return x.round()",
    "random_of_constants": "return x * torch.bernoulli(torch.ones(4))",
    "format": "print(f'{x:.3f}')\nreturn x",
    "in": "return x if 1.0 in x else -x",
    "allclose": "return x if torch.allclose(x, x) else -x",
    # training
    "backward": "x.sum().backward()\nreturn x",
    "autograd": "return torch.autograd.grad(x.sum(), x)[0]",
    "dropout": "return F.dropout(x, 0.5)",
    "dropout_module": "return drop(x)",
    "batch_norm_training": "return norm(x.view(1, 4))",
    "bernoulli": "return torch.bernoulli(torch.sigmoid(x))",
    "randn": "return x + torch.randn(4)",
    "randn_like": "return x + torch.randn_like(x)",
    "gumbel": "return F.gumbel_softmax(x, dim=0)",
    "lstm_dropout": "return deep(x.view(1, 1, 4))[0]",
    # changes in place
    "parameter_in_place": "w.add_(1.0)\nreturn w[0] + x",
    "parameter_set": "w[0] = x\nreturn x",
    "field_in_place": "node.x.mul_(2.0)\nreturn node.x",
    "expanded_in_place": "y = x.expand(2, 4)\ny += 1\nreturn y[0]",
    "reshaped_after_view": "y = x.view(2, 2)\nx.unsqueeze_(0)\nreturn y",
    "constant_in_place": "mask = torch.zeros(4, dtype=torch.bool)\nmask[0] = x[0] > 0\nreturn mask * x",
    "computed_before": "return x @ before",
    "mask_of_several": "x[x > 0] = x\nreturn x",
    "set_": "y = x + 1\ny.set_(x)\nreturn y",
    "resize_": "return x.resize_(2, 2)",
    "as_strided": "return x.as_strided((2,), (2,))",
    "set_data": "y = x + 1\ny.data = x\nreturn y",
    # element types and devices
    "double": "return x.double()",
    "half": "return x.half()",
    "to_dtype": "return x.to(torch.float64)",
    "to_cuda": "return x.to('cuda')",
    "cuda": "return x.cuda()",
    "zeros_on_cuda": "return torch.zeros(4, device='cuda') + x",
    "float64_zeros": "return torch.zeros(4, dtype=torch.float64) + x",
    "float64_constant": "return x + torch.from_numpy(np.arange(4.0))",
    "to_int": "return x.long()",
    "autocast": "with torch.autocast('cpu'):\n    return x @ w",
    "sparse": "return x.to_sparse()",
    # wrong arguments
    "shapes": "return x + torch.ones(3)",
    "linear_shapes": "return linear(torch.cat([x, x]))",
    "dim": "return x.sum(dim=3)",
    "view_size": "return x.view(3, -1)",
    "view_of_transposed": "return w.t().view(16)",
    "out_of_another_shape": "y = torch.zeros(2)\ntorch.add(x, x, out=y)\nreturn y",
    "dtype_argument": "return torch.sum(x, dtype=torch.float64)",
    "cat_of_tensor_and_number": "return torch.cat([x, 1.0])",
    "softmax_dtype": "return torch.softmax(x, 0, dtype=torch.float64)",
}  # fmt: skip


class Training(nn.Module):
    """Modules as they are before eval() is called."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.eye(4) + 1)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.conv = nn.Conv1d(1, 1, 2)
        self.deep = nn.LSTM(4, 4, num_layers=2, dropout=0.5)


def define(name: str, body: str, module: nn.Module) -> Any:
    """A model in a file of its own."""
    source = "def f(node):\n    x = node.x.clone()\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    file = f"{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"torch": torch, "F": F, "nn": nn, "np": np, "math": math, **vars(module)["_modules"]}
    names |= {**vars(module)["_parameters"], "before": module.w * 2}
    exec(compile(source, file, "exec"), names)
    return names["f"]


def message(name: str, body: str) -> str:
    module = Training()
    written = define(name, body, module)
    params = {id(p): n for n, p in [*module.named_parameters(), *module.named_buffers()]}

    def f(node: Any) -> Any:
        with tracing_mode(params):
            return written(node)

    weights = {n: p for n, p in [*module.named_parameters(), *module.named_buffers()] if p.is_floating_point()}
    with pytest.raises(cortex.ModelError) as caught:
        Trace(cortex.model(f), weights).see([Node(x=torch.ones(4), word=1)])
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("name", BODIES)
def test_refusal(name: str, golden: Callable[[str, str], None]) -> None:
    said = message(name, BODIES[name])
    assert f"{name}.py, line" in said, "it names the user's line"
    golden(f"errors/torch/{name}", said)
