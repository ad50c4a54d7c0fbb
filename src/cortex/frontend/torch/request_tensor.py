"""A tensor that is given to the module beside the structure, of which nodes take their own part: `inputs[node.idx]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from cortex.frontend.spans import fail
from cortex.frontend.torch.steps import At, Steps, follow

ROW_BY_ROW = (
    *(F.embedding, F.linear, F.dropout, F.layer_norm, F.relu, F.gelu, F.elu, F.leaky_relu, F.softmax, F.log_softmax),
    *(torch.tanh, torch.sigmoid, torch.relu, torch.exp, torch.Tensor.tanh, torch.Tensor.sigmoid, torch.Tensor.relu),
    *(torch.embedding, torch._C._nn.linear, torch.dropout, torch.layer_norm),
)
"""Functions of which each row of the result depends on that row of the first argument only."""

SHAPELESS = ("dtype", "device", "is_cuda", "requires_grad", "layout", "new", "new_zeros", "new_ones", "new_full")
"""What may be asked of a tensor whose number of rows differs from request to request."""


@dataclass(frozen=True)
class Row:
    """A part of the request's tensor `name`: the row that the integer at `steps` from the node says."""

    name: str
    steps: Steps

    def __call__(self, call: Any) -> Any:
        """The row, for a node of a call."""
        return call.given[self.name][follow(call.node, self.steps)]


class RequestTensor:
    """The tensor, and the functions that were applied to it as a whole, row by row."""

    def __init__(self, name: str, sample: Any, functions: tuple[Callable[[Any], Any], ...] = ()) -> None:
        self._cortex_name = name
        self._cortex_sample = sample
        self._cortex_functions = functions

    @classmethod
    def __torch_function__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of the whole tensor is one of each row, where that is the same."""
        given, position = kwargs or {}, next((i for i, a in enumerate(args) if isinstance(a, cls)), None)
        if position is None or function not in ROW_BY_ROW:
            raise fail(
                f"{getattr(function, '__name__', function)} of a tensor that is given beside the structure, as a "
                "whole: its number of rows differs from request to request. Take a node's row first: inputs[node.idx]."
            )
        tensor = args[position]

        def of_row(row: Any) -> Any:
            return function(*args[:position], row, *args[position + 1 :], **given)

        return cls(tensor._cortex_name, tensor._cortex_sample, (*tensor._cortex_functions, of_row))

    def __getitem__(self, key: Any) -> Any:
        from cortex.frontend.torch.standins import NodeField, tracing

        if isinstance(key, int):
            steps: Steps = ()
            row: Any = Row(self._cortex_name, ())
            name = f"{self._cortex_name}_{key}"
            row = lambda call: call.given[self._cortex_name][key]  # noqa: E731
        elif isinstance(key, NodeField):
            steps = key._cortex_steps
            row = Row(self._cortex_name, steps)
            name = f"{self._cortex_name}_of_{key._cortex_name}"
        else:
            raise fail(
                f"a tensor that is given beside the structure is indexed with a {type(key).__name__}; an integer field "
                "of a node is accepted: inputs[node.idx]."
            )
        b = tracing()
        b.accessors.relate(name, row)
        found: Any = NodeField(name, (At(name),))
        for function in self._cortex_functions:
            found = function(found)
        return found

    def __getattr__(self, name: str) -> Any:
        if name in SHAPELESS:
            return getattr(torch.as_tensor(self._cortex_sample), name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise fail(
            f"`.{name}` of a tensor that is given beside the structure: its number of rows differs from request to "
            "request. Take a node's row first: inputs[node.idx]."
        )
