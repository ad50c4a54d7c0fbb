"""What values nodes hold: data, other nodes, or what Python has for control flow. It does not load torch."""

from __future__ import annotations

import sys
import types
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

PLAIN = (str, int, float, complex, bytes, np.generic, Decimal, Fraction)
OF_MEMORY = (
    "is_contiguous", "stride", "strides", "storage_offset", "requires_grad", "grad", "is_leaf", "retains_grad",
)  # fmt: skip
"""Attributes of arrays and tensors that their form does not tell."""
OF_TYPE = ("dtype", "itemsize", "element_size", "nbytes", "is_floating_point", "is_complex", "is_signed")
"""Attributes that the element type and the shape tell; floats of all widths are computed with as float32."""
OF_SCALAR = ("shape", "ndim", "size", "dtype", "itemsize", "nbytes")
"""Attributes of NumPy's numbers that their class tells."""
METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType, types.FunctionType)


def is_data(value: Any) -> bool:
    """Is this an array or a tensor?"""
    torch = sys.modules.get("torch")  # there is no tensor where torch is not loaded
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def is_node(value: Any) -> bool:
    """Is this an object with attributes of its own, rather than data?"""
    if value is None or isinstance(value, (*PLAIN, Enum, type)) or type(value) in (list, tuple, set, frozenset):
        return False
    return not isinstance(value, METHODS) and not is_data(value)


def category(value: Any) -> str:
    """What decides by what a value is stood for."""
    if isinstance(value, bool | np.bool_):
        return "truth"
    if isinstance(value, Enum | type):
        return "name"
    if isinstance(value, PLAIN):
        return "data"
    if is_data(value):
        return "array"
    return type(value).__name__ if type(value) in (list, tuple) else "node"


def class_name(value: Any) -> str:
    """The full name of the class."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def form(value: Any) -> str:
    """The element type and the shape of an array or a tensor, `float32[3]`; of anything else, its category."""
    if not is_data(value):
        return category(value)
    name = f"np.{value.dtype.name}" if isinstance(value, np.ndarray) else str(value.dtype).removeprefix("torch.")
    return f"{name}{list(value.shape)}"


def row_form(value: Any) -> str:
    """The element type and the shape of the rows of a tensor, of which there may be any number: `tensor float32[:, 4]`.

    Code may ask for it without reading a row.
    """
    shape = value.shape
    return _row_form(value.dtype, tuple(shape[1:]) if len(shape) else None)


@lru_cache(maxsize=256)
def _row_form(dtype: Any, shape: tuple[int, ...] | None) -> str:
    """It is asked for in every call."""
    sizes = "" if shape is None else ", ".join((":", *map(str, shape)))
    return f"tensor {str(dtype).removeprefix('torch.')}[{sizes}]"


WHOLE = "whole "


def whole_form(value: Any) -> str:
    """The element type and the shape of a tensor that is taken as a whole: `whole float32[1, 4]`."""
    return f"{WHOLE}{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def identity(value: Any) -> str:
    """Which member of an enumeration, or which class, a value is; of other values, of which class they are."""
    named = getattr(value, "name", None) if isinstance(value, Enum) else getattr(value, "__qualname__", None)
    return f"{type(value).__qualname__}.{named or ''}"


def pattern(items: Any) -> str:
    """Which items of a list are nodes (n), None (0) or data (d)."""
    if isinstance(items, PLAIN) or is_data(items):
        return category(items)
    return "".join("n" if is_node(x) else "0" if x is None else "d" for x in items)


def keys(value: Any) -> str:
    """The keys of a dictionary, in order."""
    return repr(list(value))


def floats(items: Any) -> str:
    """Does a list hold floats? In other nodes there may be something else in its place, which is told apart."""
    if type(items) not in (list, tuple):
        return category(items)
    return "some" if any(isinstance(item, float) for item in items) else "none"
