"""A field of a node as a symbolic tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cortex.frontend import pointwise
from cortex.frontend.builder import builder
from cortex.frontend.facts import ABSENT
from cortex.frontend.field_arithmetic import compute, is_exact
from cortex.frontend.signals import NeedsExample
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.categories import is_data
from cortex.frontend.torch.content import integers, whole_field, whole_fields
from cortex.frontend.torch.tensor import TorchTensor, meta_tensor

WHOLE_TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def unchangeable(what: str) -> str:
    """What to say to who changes a parameter or a field."""
    return f"{what} is changed in place. Change a copy: x = x.clone()."


def field_tensor(x: Attribute) -> TorchTensor:
    """Integers where the field holds some, so that they can index; else floats."""
    made = _field_tensor(x)
    made._cortex_is_numpy = isinstance(x._cortex_sample(), np.ndarray) and not getattr(x, "_cortex_is_row", False)
    return made


def ask_element_types() -> None:
    """Make the classes of numbers that became tensors facts of the nodes: code asks for an element type."""
    tracer: Any = builder()
    for x in getattr(tracer, "typed_by_values", ()):
        sample = x._cortex_sample()
        first = next(iter(sample), 0) if isinstance(sample, list | tuple) else sample
        if isinstance(first, bool | np.bool_ | np.floating) and not isinstance(first, np.float32):
            raise fail(
                f"an element type is asked for, and torch makes a tensor of {torch.as_tensor(first).dtype} of "
                f"node.{x._cortex_name}, which is float32 here. Give the type: torch.tensor(..., dtype=torch.float32)."
            )
        x._cortex_ask_class()


def _field_tensor(x: Attribute) -> TorchTensor:
    parts: Any = x if hasattr(x, "_cortex_item") else None
    if parts is not None:
        parts._cortex_ask_form()
    shape, whole = _form(x)
    frozen = unchangeable(f"node.{x._cortex_name}")
    is_list = isinstance(x._cortex_sample(), list | tuple)
    if is_list and parts is not None:
        parts._cortex_ask_length()
    if parts is not None and not is_data(x._cortex_sample()):
        tracer: Any = builder()
        tracer.typed_by_values.append(parts)
    if whole and parts is not None and len(shape) == 1 and not (_is_tensor(x) and shape == (1,)):
        return TorchTensor(whole_fields(x, shape[0]), meta_tensor(shape, _whole_type(x)), frozen)
    if whole and all(n == 1 for n in shape):
        return TorchTensor(integers([whole_field(x)], shape), meta_tensor(shape, _whole_type(x)), frozen)
    if _is_truth(x._cortex_sample()):
        return TorchTensor(pointwise.comparison("ne", x._cortex_value(), pointwise.fill(0.0)), frozen=frozen)
    value = (compute("exactly", (x,)) if whole else x)._cortex_value()
    made = TorchTensor(value, meta_tensor(value.shape, _whole_type(x) if whole else torch.float32), frozen)
    made._cortex_field = x if is_exact(x) else None
    return made


def _whole_type(x: Attribute) -> torch.dtype:
    """The type of integers that it holds."""
    found = getattr(x._cortex_sample(), "dtype", None)
    name = str(found).removeprefix("torch.")
    return next((kind for kind in WHOLE_TYPES if str(kind) == f"torch.{name}"), torch.int64)


def _is_truth(sample: Any) -> bool:
    """Is it an array or a tensor of truth values?"""
    return getattr(sample, "dtype", None) in (torch.bool, np.dtype(bool)) and not isinstance(sample, np.generic)


def _is_tensor(x: Attribute) -> bool:
    """Is it a tensor of torch? One of one element is an integer to Python, and is read as such."""
    return hasattr(x._cortex_sample(), "detach")


def _form(x: Attribute) -> tuple[tuple[int, ...], bool]:
    """The shape of a real value of the field, and whether it consists of integers."""
    k, name, sample = builder().knowledge, x._cortex_name, x._cortex_sample()
    if sample is not ABSENT:
        k.forms[name] = _form_of(sample)
    elif name not in k.forms:
        if name not in k.accessors.shapes:
            raise NeedsExample(f"the shape of the field '{name}'")
        return k.accessors.shapes[name], False
    return k.forms[name]


def _form_of(sample: Any) -> tuple[tuple[int, ...], bool]:
    if hasattr(sample, "detach"):
        return tuple(sample.shape), sample.dtype in WHOLE_TYPES
    try:
        array = np.asarray(sample)
    except (TypeError, ValueError):
        return (), False  # what computes with it says what is wrong
    return tuple(array.shape), array.dtype.kind in "iu"
