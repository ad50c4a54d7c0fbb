"""`float(node.x)` and `int(node.x)`: Python's numbers of fields, which are asked for only where Python needs them.

Python would have the number itself there, and there would be a kind of node for each. Where a tensor is made of it or
computed with it, it is the field; whatever else is done with it is done to the number, which then decides the kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from cortex.frontend.arity.told import Count
from cortex.frontend.builder import OTHER_NODE, Builder, Value, asked_by_user, builder
from cortex.frontend.facts import ORDER
from cortex.frontend.foreign import TORCH
from cortex.frontend.spans import fail
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.fields import field_tensor
from cortex.frontend.torch.tensor import TorchTensor
from cortex.frontend.torch.tokens import is_constructing

WITH_TENSORS = ("add", "sub", "mul", "truediv", "radd", "rsub", "rmul", "rtruediv")
COMPUTED = (
    *WITH_TENSORS, "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "divmod", "rdivmod",
    "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert",
    "round", "trunc", "floor", "ceil",
)  # fmt: skip
"""Special methods that are those of the field (field_arithmetic.py)."""
COMPARED = ("eq", "ne", *ORDER)
PYTHON = ("int", "complex", "bool", "hash", "str", "repr", "format")
"""Special methods that are those of the number."""


class Number:
    """`kind(node.x)`: a field, which may be computed, that holds numbers of this kind."""

    __slots__ = ("_cortex_builder", "_cortex_field", "_cortex_kind")

    def __init__(self, field: Attribute, kind: type) -> None:
        self._cortex_field = field
        self._cortex_kind = kind
        self._cortex_builder: Builder = builder()

    def _cortex_own(self) -> Attribute:
        if self._cortex_builder is not builder():
            raise fail(OTHER_NODE)
        return self._cortex_field

    def _cortex_number(self) -> Any:
        """The number, which decides what kind of node this is."""
        return self._cortex_kind(self._cortex_own()._cortex_tag())

    def _cortex_tensor(self) -> TorchTensor:
        """What torch makes of the number."""
        made = field_tensor(self._cortex_own())
        return TorchTensor(made._cortex_value()) if self._cortex_kind is float else made

    def _cortex_value(self) -> Value:
        return self._cortex_tensor()._cortex_value()

    def _cortex_index(self) -> Any:
        return self._cortex_own()._cortex_index()

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        return self._cortex_kind if asked_by_user() else type(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_cortex", "__array", "__torch")):
            raise AttributeError(name)
        return getattr(self._cortex_number(), name)

    def __float__(self) -> float:
        tokens: Any = getattr(TORCH.get(), "tokens", None)
        return float(tokens.float(self) if tokens is not None and is_constructing() else self._cortex_number())

    def __index__(self) -> int:
        if self._cortex_kind is not int:
            raise TypeError("'float' object cannot be interpreted as an integer")
        tokens: Any = getattr(TORCH.get(), "tokens", None)
        return int(tokens.whole(self) if tokens is not None and is_constructing() else self._cortex_number())

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.asarray(self._cortex_number())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy computes with the number."""
        return getattr(ufunc, method)(*known(inputs), **known(kwargs))

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        return function(*known(args), **known(kwargs))

    @classmethod
    def __torch_function__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The field for functions that compute with it; the number for all others."""
        return function(*known(args), **known(kwargs or {}))


def _method(name: str) -> Callable[..., Any]:
    special = f"__{name}__"

    def method(self: Number, *others: Any) -> Any:
        return getattr(self._cortex_number(), special)(*known(others))

    method.__name__ = special
    return method


def _of_field(name: str) -> Callable[..., Any]:
    special = f"__{name}__"

    def method(self: Number, *others: Any) -> Any:
        if name in WITH_TENSORS and isinstance(others[0], torch.Tensor):
            return getattr(self._cortex_tensor(), special)(*others)
        if self._cortex_kind is int and name in COMPUTED and all(type(x) is int for x in others):
            return getattr(self._cortex_number(), special)(*others)  # sizes and bounds: torch takes no other numbers
        return as_number(getattr(self._cortex_own(), special)(*map(as_field, others)))

    method.__name__ = special
    return method


for _name in PYTHON:
    setattr(Number, f"__{_name}__", _method(_name))
for _name in (*COMPUTED, *COMPARED):
    setattr(Number, f"__{_name}__", _of_field(_name))


def as_field(x: Any) -> Any:
    """The field that a number is, also a number of children, and anything else itself."""
    if type(x) is Count:
        return x.as_field()
    return x._cortex_own() if type(x) is Number else x


def as_number(x: Any) -> Any:
    """The number that a field holds, and anything else itself."""
    if type(x) is tuple:
        return tuple(map(as_number, x))
    sample = x._cortex_sample() if isinstance(x, Attribute) else None
    return Number(x, type(sample)) if type(sample) in (int, float) else x


def known(x: Any) -> Any:
    """`x` with numbers in place of what stands for them, and itself where there are none."""
    match x:
        case Number():
            return x._cortex_number()
        case slice():
            return slice(_bound(x.start), _bound(x.stop), _bound(x.step))
        case tuple() | list() if type(x) in (tuple, list) and has_number(x):
            return type(x)(map(known, x))
        case dict() if type(x) is dict and has_number(x):
            return {key: known(value) for key, value in x.items()}
        case tuple() if hasattr(x, "_make"):
            return x._make(map(known, x))
    return x


def _bound(x: Any) -> Any:
    """What a slice begins or ends with: of a field, the value, which decides the kind."""
    return x._cortex_tag() if isinstance(x, Attribute) and isinstance(x._cortex_sample(), int) else known(x)


def has_number(x: Any) -> bool:
    """Does `Number` occur anywhere in it, or a field in a slice?"""
    if type(x) is slice:
        return any(isinstance(part, Number | Attribute) for part in (x.start, x.stop, x.step))
    if type(x) in (tuple, list):
        return any(map(has_number, x))
    return any(map(has_number, x.values())) if type(x) is dict else type(x) is Number


def as_torch_takes(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a function of torch: fields remain where it computes with them, others become numbers."""
    if function in _sized():
        args = _sizes(args)
    if function in _computing():
        return tuple(x.as_number() if type(x) is Count and x.is_periodic else x for x in args), kwargs
    if not (has_number(args) or has_number(kwargs)):
        return args, kwargs
    if function is torch.Tensor.__getitem__ and not isinstance(args[1], slice):
        items = args[1] if isinstance(args[1], tuple) else (args[1],)
        return (args[0], tuple(item if _is_position(item) else known(item) for item in items)), kwargs
    return known(args), known(kwargs)


def _sizes(x: Any) -> Any:
    """`x` with integers in place of fields that are integers: sizes decide what the module does."""
    if type(x) in (tuple, list):
        return type(x)(map(_sizes, x))
    return x._cortex_tag() if isinstance(x, Attribute) and type(x._cortex_sample()) is int else x


def _is_position(x: Any) -> bool:
    return type(x) is Number and x._cortex_kind is int and x._cortex_own()._cortex_sample() >= 0


@lru_cache(maxsize=1)
def _sized() -> frozenset[Any]:
    """The functions of torch all of whose integers are sizes."""
    own = [getattr(torch, name) for name in ("zeros", "ones", "empty", "eye")]
    names = ("new", "new_zeros", "new_ones", "new_empty", "view", "reshape", "expand", "repeat")
    return frozenset([*own, *(getattr(torch.Tensor, name) for name in names)])


@lru_cache(maxsize=1)
def _computing() -> frozenset[Any]:
    """The functions of torch to which such a number is a tensor."""
    names = ("add", "sub", "mul", "div", "__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rdiv__", "true_divide")
    found = [getattr(owner, name) for owner in (torch, torch.Tensor) for name in names if hasattr(owner, name)]
    return frozenset([*found, torch.tensor, torch.as_tensor])
