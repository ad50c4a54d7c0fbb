"""A tensor that is given to the module beside the structure, of which nodes take their own part: `inputs[node.idx]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.overrides import TorchFunctionMode

from cortex.errors import ModelError
from cortex.frontend.spans import fail
from cortex.frontend.torch.calls import Row
from cortex.frontend.torch.steps import At, identifier

PLAIN = (str, int, float, bool, tuple, type(None))

ROW_BY_ROW = (
    *(F.embedding, F.linear, F.dropout, F.layer_norm, F.relu, F.gelu, F.elu, F.leaky_relu, F.softmax, F.log_softmax),
    *(torch.tanh, torch.sigmoid, torch.relu, torch.exp, torch.Tensor.tanh, torch.Tensor.sigmoid, torch.Tensor.relu),
    *(torch.embedding, torch._C._nn.linear, torch.dropout, torch.layer_norm),
)
"""Functions of which each row of the result depends on that row of the first argument only."""

SHAPELESS = ("dtype", "device", "is_cuda", "requires_grad", "layout", "new", "new_zeros", "new_ones", "new_full")
"""What may be asked of a tensor whose number of rows differs from request to request."""


class RowFunction:
    """A function of a whole tensor, applied to a row of it. Equal to others that do the same to a row."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], position: int) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.position = position
        others = (*args[:position], *args[position + 1 :], *sorted(kwargs.items()))
        self._key = (function, position, *(x if isinstance(x, PLAIN) else id(x) for x in others))

    def __call__(self, row: Any) -> Any:
        """The function of the row."""
        return self.function(*self.args[: self.position], row, *self.args[self.position + 1 :], **self.kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class RowByRow(TorchFunctionMode):
    """Sees calls of torch with tensors of the request before anyone else does."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Row by row, where an argument is such a tensor."""
        if any(isinstance(a, RequestTensor) for a in args):
            return RequestTensor.__torch_function__(function, types, args, kwargs)
        return function(*args, **(kwargs or {}))


class RequestTensor:
    """The tensor, and the functions that were applied to it as a whole, row by row."""

    _cortex_is_of_request = True

    def __init__(self, name: str, sample: Any, functions: tuple[RowFunction, ...] = ()) -> None:
        self._cortex_name = name
        self._cortex_sample = sample
        self._cortex_functions = functions

    @classmethod
    def __torch_function__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of the whole tensor is one of each row, where that is the same."""
        position = next((i for i, a in enumerate(args) if isinstance(a, cls)), None)
        if position is None or function not in ROW_BY_ROW:
            raise fail(
                f"{getattr(function, '__name__', function)} of a tensor that is given beside the structure, as a "
                "whole: its number of rows differs from request to request. Take a node's row first: inputs[node.idx]."
            )
        tensor = args[position]
        of_row = RowFunction(function, args, kwargs or {}, position)
        return cls(tensor._cortex_name, tensor._cortex_sample, (*tensor._cortex_functions, of_row))

    def __getitem__(self, key: Any) -> Any:
        from cortex.frontend.torch.number import Number
        from cortex.frontend.torch.row_field import RowField
        from cortex.frontend.torch.standins import NodeField, tracing

        key = key._cortex_own() if type(key) is Number and key._cortex_kind is int else key
        if isinstance(key, int):
            row, name = Row(self._cortex_name, number=key), f"{self._cortex_name}_{key}"
        elif isinstance(key, NodeField):
            steps = key._cortex_steps
            row, name = Row(self._cortex_name, steps), f"{self._cortex_name}_of_{identifier(steps)}"
        else:
            raise fail(
                f"a tensor that is given beside the structure is indexed with a {type(key).__name__}; an integer field "
                "of a node is accepted: inputs[node.idx]."
            )
        b = tracing()
        b.model.need_calls()  # only calls have rows
        b.accessors.relate(name, row)
        found: Any = RowField(name, (At(name),))
        for function in self._cortex_functions:
            found = function(found)
        return found

    def __len__(self) -> int:
        raise _refused("len()")

    def __iter__(self) -> Iterator[Any]:
        raise _refused("a loop over the rows")

    def __getattr__(self, name: str) -> Any:
        if name in SHAPELESS:
            return getattr(torch.as_tensor(self._cortex_sample), name)
        if name.startswith(("__", "_cortex_")):  # no names of the user's: asked by Python and by the front end
            raise AttributeError(name)
        raise _refused(f"`.{name}`")


def _refused(what: str) -> ModelError:
    return fail(
        f"{what} of a tensor that is given beside the structure: its number of rows differs from request to request. "
        "Take a node's row first: inputs[node.idx]."
    )
