"""Attributes of a NumPy array on a node, as operations on the tensor that stands for it.

Arrays and tensors have methods of the same name that mean different things: `repeat`, `size`, `std`, `max(0)`. Those
that are listed here mean what they do in NumPy; others are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.refusals import plain_name
from cortex.frontend.torch.tensor import TorchTensor, call

KNOWN = ("shape", "ndim", "size", "dtype", "itemsize", "nbytes")
"""What an array says without its elements."""


DIFFERENT = (
    "cumprod", "cumsum", "dtype", "nonzero", "repeat", "size", "sort", "std", "transpose", "var", "view",
)  # fmt: skip
WITH_AXIS = ("max", "min")
"""Methods that mean something else in torch, the latter if an axis is given."""


def is_of_numpy(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Is a function of torch called by an operator or a method of a NumPy array, so that its result is one too?"""
    given = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor | Attribute)]
    name = plain_name(function)
    is_method = getattr(torch, name, None) is not function
    if not given or not is_method or not all(_is_numpy(x) for x in given):
        return False
    if name in DIFFERENT or (name in WITH_AXIS and len(args) + len(kwargs) > 1):
        raise fail(
            f"'{name}' of a NumPy array that is computed from what a node holds cannot be compiled: it means something "
            "else in torch. Make a tensor of the array first: torch.from_numpy(node.x)."
        )
    return True


def as_numpy(result: Any) -> Any:
    """`result`, which is an array of NumPy's in the user's code if it is a tensor."""
    if isinstance(result, TorchTensor):
        result._cortex_is_numpy = True
    return result


def _is_numpy(x: Any) -> bool:
    if isinstance(x, Attribute):
        return isinstance(x._cortex_sample(), np.ndarray) and not getattr(x, "_cortex_is_row", False)
    return isinstance(x, TorchTensor) and x._cortex_is_numpy


def array_attribute(x: Callable[[], TorchTensor], sample: np.ndarray[Any, Any], field: str, name: str) -> Any:
    """`node.FIELD.name` of an array like `sample`, which `x` gives the tensor for."""
    if name in KNOWN:
        return getattr(sample, name)
    if not hasattr(sample, name):
        raise AttributeError(f"'{type(sample).__name__}' object has no attribute '{name}'")
    if name == "T":
        return as_numpy(x().permute(*reversed(range(sample.ndim))))
    if name not in METHODS:
        raise fail(
            f"node.{field} is a NumPy array, and its attribute '{name}' cannot be compiled. Make a tensor of it and "
            f"use torch's functions: torch.from_numpy(node.{field})."
        )

    def method(*args: Any, **kwargs: Any) -> Any:
        tensor = x()
        tensor._cortex_is_numpy = False
        try:
            return as_numpy(METHODS[name](tensor, *args, **kwargs))
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise fail(
                f"node.{field}.{name}(...) of a NumPy array is called with arguments that cannot be compiled. Make a "
                f"tensor of it and use torch's functions: torch.from_numpy(node.{field})."
            ) from None

    return method


def _floats(x: TorchTensor) -> Any:
    """NumPy takes the mean of integers too."""
    return x if x.dtype.is_floating_point else x.float()


def _reduced(function: Any) -> Callable[..., Any]:
    """A reduction over one axis or all of them."""

    def reduce(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        axes = tuple(range(x.dim())) if axis is None else axis
        return function(x, axes, keepdims)

    return reduce


def _spread(function: Any) -> Callable[..., Any]:
    def reduce(x: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
        return call(function, _floats(x), dim=axis, correction=ddof, keepdim=keepdims)

    return reduce


def _reshape(x: Any, *shape: Any) -> Any:
    return x.reshape(*shape)


def _transpose(x: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
    return x.permute(*(order or reversed(range(x.dim()))))


def _astype(x: Any, dtype: Any) -> Any:
    """In single precision where NumPy would have double, as everywhere."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return x.float()
    return x.to(getattr(torch, kind.name))


METHODS: dict[str, Callable[..., Any]] = {
    "sum": _reduced(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "mean": _reduced(lambda x, axes, keep: _floats(x).mean(axes, keepdim=keep)),
    "max": _reduced(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "min": _reduced(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "std": _spread(torch.std),
    "var": _spread(torch.var),
    "reshape": _reshape,
    "ravel": lambda x: x.reshape(-1),
    "flatten": lambda x: x.reshape(-1),
    "squeeze": lambda x: x.squeeze(),
    "transpose": _transpose,
    "copy": lambda x: x.clone(),
    "astype": _astype,
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
}
