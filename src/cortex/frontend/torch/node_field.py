"""What a node holds where torch code is traced: with torch's operators and methods."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from cortex.frontend.builder import asked_by_user, is_tracing
from cortex.frontend.torch.attribute import IndexableTorchAttribute, TorchAttribute
from cortex.frontend.torch.categories import OF_MEMORY, OF_TYPE
from cortex.frontend.torch.classes import asks_class, is_asking_for_user
from cortex.frontend.torch.fields import field_tensor
from cortex.frontend.torch.numpy_arrays import array_attribute
from cortex.frontend.torch.standins import IndexableNodeField, NodeField, present, tracing
from cortex.frontend.torch.steps import Attr
from cortex.frontend.torch.tokens import is_constructing


class TorchNodeField(NodeField, TorchAttribute):
    """A number, a text, an array or a tensor that a node holds."""

    __slots__ = ()

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        if is_constructing():
            return type(self)
        frame = sys._getframe(1)
        if not asked_by_user():
            return self._cortex_class() if is_tracing() and is_asking_for_user(frame) else type(self)
        is_tensor = isinstance(self._cortex_sample(), torch.Tensor)
        return type(self) if is_tensor and not asks_class(frame) else self._cortex_class()

    def _cortex_tensor(self) -> Any:
        return field_tensor(self)

    def _cortex_array_attribute(self, sample: Any, name: str) -> Any:
        if name in OF_MEMORY and hasattr(sample, name):
            return present(tracing(), (*self._cortex_steps, Attr(name)))
        if isinstance(sample, np.ndarray):
            return array_attribute(lambda: field_tensor(self), sample, self._cortex_name, name)
        return getattr(sample if name in OF_TYPE else field_tensor(self), name)


class IndexableTorchNodeField(IndexableNodeField, TorchNodeField, IndexableTorchAttribute):
    """One that can be indexed: an array, a tensor, a list of numbers, a text."""

    __slots__ = ()
