"""Running torch code twice: by torch, and traced on symbolic tensors and evaluated by the interpreter of RA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from frontend_meaning import Node, evaluate
from torch import nn
from torch.utils import _pytree as pytree

import cortex
from cortex.frontend.torch.fields import field_tensor
from cortex.frontend.torch.mode import symbolic, tracing_mode
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.trace import Trace

torch.set_num_threads(1)


def tensors(result: Any) -> list[Any]:
    """The tensors in what a function returns; numbers and texts are compared by `plain`."""
    return [x for x in pytree.tree_leaves(result) if isinstance(x, TorchTensor | torch.Tensor)]


def plain(result: Any) -> list[Any]:
    leaves = pytree.tree_leaves(result)
    return [x for x in leaves if not isinstance(x, TorchTensor | torch.Tensor)]


def traced(
    function: Callable[..., Any], inputs: dict[str, Any], module: nn.Module | None = None
) -> tuple[Any, list[Any]]:
    """What `function(**inputs)` gives when it is traced: its plain values, and its tensors' elements."""
    params = {} if module is None else {id(p): name for name, p in _weights(module)}
    seen: list[Any] = []

    def alone(node: Any) -> Any:
        with tracing_mode(params):
            # Arguments that may be changed in place are copies of the fields.
            given = {name: field_tensor(getattr(node, name)).clone() for name in inputs}
            result = function(**given)
            seen[:] = [plain(result), [_form(x) for x in tensors(result)]]
            return (*(symbolic(x) for x in tensors(result)), torch.zeros(()))  # a node needs a state

    weights = {} if module is None else dict(_weights(module))
    trace = Trace(cortex.model(alone), weights)
    states = evaluate(trace, Node(**inputs))
    constants = [p.name for p in trace.model().params if p.name.startswith("const_")]
    assert module is None or not constants, "something computed from parameters is frozen"
    values = [value.astype(np.float32) for value in states.values()][:-1]
    return seen, values


def _weights(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    named = [*module.named_parameters(), *module.named_buffers()]
    return [(name, p) for name, p in named if p.is_floating_point()]


def _form(x: Any) -> tuple[tuple[int, ...], torch.dtype]:
    return tuple(x.shape), x.dtype


def agrees(
    function: Callable[..., Any],
    inputs: dict[str, torch.Tensor],
    module: nn.Module | None = None,
    tolerance: float = 2e-5,
) -> None:
    """Fails unless torch and the trace give the same: shapes, element types, plain values, elements."""
    with torch.no_grad():
        expected = function(**{name: x.clone() for name, x in inputs.items()})
    (values, forms), found = traced(function, inputs, module)
    assert forms == [_form(x) for x in tensors(expected)]
    assert values == plain(expected)
    for x, y in zip(found, tensors(expected), strict=True):
        np.testing.assert_allclose(x, y.detach().numpy().astype(np.float32), rtol=tolerance, atol=tolerance)
