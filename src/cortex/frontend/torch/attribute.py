"""`node.NAME` where torch code is traced: with torch's operators, and torch's methods where its value is a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import torch

from cortex.frontend.builder import Value, builder
from cortex.frontend.facts import ABSENT
from cortex.frontend.foreign import TORCH
from cortex.frontend.signals import NeedsExample
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute, IndexableAttribute, StandIn
from cortex.frontend.torch.fields import field_tensor, unchangeable
from cortex.frontend.torch.number import as_field
from cortex.frontend.torch.tensor import TorchTensor, of_numpy
from cortex.frontend.torch.tokens import is_constructing

IN_PLACE = (
    "iadd", "isub", "imul", "itruediv", "imatmul", "ipow", "ifloordiv", "imod", "iand", "ior", "ixor", "setitem",
)  # fmt: skip
"""Special methods that change tensors, arrays and lists in place."""


class TorchAttribute(Attribute):
    """`owner.name`, which is not None."""

    __slots__ = ()

    def _cortex_is_array(self) -> bool:
        """Is its value a tensor of torch, an array, or a list of numbers?"""
        sample = self._cortex_sample()
        numbers = isinstance(sample, list | tuple) and bool(sample) and all(isinstance(n, int | float) for n in sample)
        return numbers or isinstance(sample, np.ndarray) or hasattr(sample, "detach")

    def _cortex_class(self) -> type:
        sample = self._cortex_sample()
        return type(sample) if sample is not ABSENT and self._cortex_is_array() else super()._cortex_class()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("__", "_cortex")):
            if self._cortex_is_array():
                return getattr(field_tensor(self), name)
            if self._cortex_sample() is ABSENT and hasattr(torch.Tensor, name):
                raise NeedsExample(f"whether '{self._cortex_name}' is a child or a tensor")
        return super().__getattr__(name)

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        """What the user's `isinstance` asks for; a constructor of torch is told the truth, for it asks first."""
        return type(self) if is_constructing() else super().__class__

    @property
    def __torch_function__(self) -> Any:
        """Whom torch hands functions to; a constructor would take who has it for a storage, and not look into it."""
        if self._cortex_is_array() and is_constructing():
            raise AttributeError
        return super().__torch_function__

    def __iter__(self) -> Iterator[Any]:
        known = (*builder().knowledge.lists, "children")
        if self._cortex_sample() is ABSENT and self._cortex_name not in known:
            raise NeedsExample(f"whether '{self._cortex_name}' is a list of children or a tensor")
        return iter(field_tensor(self)) if self._cortex_is_array() else super().__iter__()

    def __len__(self) -> int:
        return len(field_tensor(self)) if self._cortex_is_array() else super().__len__()

    def __bool__(self) -> bool:
        return bool(field_tensor(self)) if self._cortex_is_array() else super().__bool__()

    def __index__(self) -> int:
        tokens = getattr(TORCH.get(), "tokens", None)
        if tokens is None or not is_constructing():
            return super().__index__()
        if self._cortex_is_array():
            raise TypeError  # or it would be taken for the size of a tensor
        return int(tokens.whole(self))

    def __float__(self) -> float:
        tokens = getattr(TORCH.get(), "tokens", None)
        if tokens is not None and is_constructing():
            return float(tokens.float(self))
        return float(field_tensor(self)) if self._cortex_is_array() else super().__float__()

    def __int__(self) -> int:
        return int(field_tensor(self)) if self._cortex_is_array() else super().__int__()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """As of the tensor that the field is."""
        tensors = [field_tensor(x) if isinstance(x, Attribute) else x for x in inputs]
        first = next(x for x in tensors if isinstance(x, TorchTensor))
        return first.__array_ufunc__(ufunc, method, *tensors, **kwargs)

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise fail(of_numpy(function.__name__))

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise fail(
            f"node.{self._cortex_name} cannot become a NumPy array, nor index one: a module is compiled before any "
            f"value is known. Use functions of torch: torch.tensor(node.{self._cortex_name}), or, for a table in an "
            f"array, torch.from_numpy(table)[node.{self._cortex_name}]."
        )

    __hash__ = Attribute.__hash__

    def _cortex_apply(self, fn: str, special: str, *others: Any, reflected: bool = False) -> Any:
        return super()._cortex_apply(fn, special, *map(as_field, others), reflected=reflected)

    def _cortex_compare(self, fn: str, other: object) -> Any:
        """Elementwise with tensors; else what the module does depends on it."""
        if isinstance(other, TorchTensor | torch.Tensor):
            return self._cortex_elementwise(f"__{fn}__", other)
        return super()._cortex_compare(fn, as_field(other))

    def _cortex_compute(self, fn: str, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if isinstance(x, Attribute) and x._cortex_sample() is ABSENT:
                field_tensor(x)  # which asks for an example where it may be a tensor
        return super()._cortex_compute(fn, operands)

    def _cortex_elementwise(self, special: str, *others: Any) -> Any:
        return getattr(field_tensor(self), special)(*others)

    def _cortex_wrapped(self, value: Value) -> Any:
        return TorchTensor(value)


class IndexableTorchAttribute(TorchAttribute, IndexableAttribute):
    """One that may be a list of children, or a tensor."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return field_tensor(self)[key] if self._cortex_is_array() else super().__getitem__(key)


def torch_attribute(owner: StandIn, name: str) -> Attribute:
    """`owner.name` where torch code is traced; not indexable where it is a number."""
    found = TorchAttribute(owner, name)
    return found if isinstance(found._cortex_sample(), int | float) else IndexableTorchAttribute(owner, name)


def _matmul(name: str) -> Any:
    def operator(self: Any, *args: Any) -> Any:
        return getattr(field_tensor(self), name)(*args)

    operator.__name__ = name
    return operator


def _change(name: str) -> Any:
    def change(self: Any, *_: Any) -> Any:
        sample = self._cortex_sample()
        if name == "__setitem__" or hasattr(sample, "detach") or isinstance(sample, np.ndarray | list):
            raise fail(unchangeable(f"node.{self._cortex_name}"))
        return NotImplemented  # numbers and texts are not changed: there will be others

    change.__name__ = name
    return change


for _name in IN_PLACE:
    setattr(TorchAttribute, f"__{_name}__", _change(f"__{_name}__"))
for _name in ("__matmul__", "__rmatmul__"):
    setattr(TorchAttribute, _name, _matmul(_name))
