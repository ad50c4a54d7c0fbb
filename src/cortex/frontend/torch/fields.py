"""A field of a node as a symbolic tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cortex.frontend.facts import ABSENT
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.content import integers
from cortex.frontend.torch.tensor import TorchTensor, meta_tensor

WHOLE_TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def field_tensor(x: Attribute) -> TorchTensor:
    """Integers where the field is one, so that it can index; else floats."""
    sample = x._cortex_sample()
    frozen = f"node.{x._cortex_name}"
    shape, whole = _form(sample)
    if whole and all(n == 1 for n in shape):
        return TorchTensor(integers([x._cortex_index()], shape), frozen=frozen)
    value = x._cortex_value()
    return TorchTensor(value, meta_tensor(value.shape, torch.int64 if whole else torch.float32), frozen)


def _form(sample: Any) -> tuple[tuple[int, ...], bool]:
    """The shape of a real value, and whether it consists of integers."""
    if sample is ABSENT:
        return (), False
    if hasattr(sample, "detach"):
        return tuple(sample.shape), sample.dtype in WHOLE_TYPES
    try:
        array = np.asarray(sample)
    except (TypeError, ValueError):
        return (), False
    return tuple(array.shape), array.dtype.kind in "iu"
