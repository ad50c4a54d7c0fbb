"""Arrays as users give them: NumPy arrays and PyTorch tensors, looked at without a copy and without importing torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from cortex.errors import ModelError, StructureError
from cortex.runtime.storage import Array

_F32 = np.dtype(np.float32)


def is_tensor(x: object) -> bool:
    """Is `x` a PyTorch tensor?"""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def array_of(x: Any, who: str, what: str) -> Array:
    """The memory of a f32 array or tensor, with its shape and strides."""
    if is_tensor(x):
        try:  # what else is to be asked of a tensor takes as long as a small product
            x = x.numpy()
        except (TypeError, RuntimeError):
            x = _looked_at(x, who, what)
    if not isinstance(x, np.ndarray):
        raise StructureError(f"{who}: {what} is a {type(x).__name__}; give a float32 NumPy array or PyTorch tensor")
    if x.dtype != _F32:
        raise StructureError(f"{who}: {what} has elements of type {x.dtype}; give a float32 array")
    return x


def _looked_at(x: Any, who: str, what: str) -> Array:
    """The memory of a tensor that does not just give it: a parameter's; else what keeps it from that."""
    if x.device.type != "cpu":
        raise StructureError(f"{who}: {what} is on device {x.device}; give a tensor on the CPU")
    try:
        found: Array = x.detach().numpy()
    except (TypeError, RuntimeError):  # elements that NumPy does not know, or that do not lie there as they are
        how = f"elements of type {x.dtype} ({x.layout})"
        raise StructureError(f"{who}: {what} has {how}; give a dense float32 tensor") from None
    return found


def weight_of(x: Any, who: str, what: str) -> Array:
    """A weight: any array of real numbers, as f32."""
    if is_tensor(x):
        x = x.detach().cpu().float().numpy()
    try:
        found = np.asarray(x)
    except (TypeError, ValueError):
        found = np.asarray(None)
    if found.dtype.kind not in "fiu":
        raise ModelError(f"{who}: {what} is a {type(x).__name__}; give an array of numbers")
    return np.ascontiguousarray(found, np.float32)


def is_whole(x: Array) -> bool:
    """Do the elements lie one after the other, each where a float may?"""
    return x.flags.c_contiguous and x.flags.aligned


def whole_number(x: Any, who: str, what: str, least: int) -> int:
    """A parameter that must be an integer of at least `least`."""
    if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < least:
        raise ModelError(f"{who}: {what}={x!r}; give an integer of at least {least}")
    return int(x)


def pair(x: Any, who: str, what: str, least: int) -> tuple[int, int]:
    """A parameter for both directions: one integer, or one for rows and one for columns."""
    values = tuple(x) if isinstance(x, tuple | list) else (x, x)
    if len(values) != 2:
        raise ModelError(f"{who}: {what}={x!r}; give an integer, or two: for rows and for columns")
    return whole_number(values[0], who, what, least), whole_number(values[1], who, what, least)
