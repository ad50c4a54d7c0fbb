"""Symbolic torch tensors: what the user's torch code computes with while it is traced.

A `TorchTensor` is no torch.Tensor, but says it is one, and torch asks it first (`__torch_function__`). Beside what it
holds it has a *meta* tensor: torch's own, with shape, strides and element type but no elements. Every operator runs
on the meta tensors too, so that torch itself checks arguments and says what is a view of what.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import torch

from cortex.frontend.builder import Value
from cortex.frontend.foreign import TORCH
from cortex.frontend.spans import fail
from cortex.frontend.tensor import Operand
from cortex.frontend.torch.content import Content, Integers, as_value, broadcast, integers
from cortex.frontend.torch.views import View

DTYPES = {"f32": torch.float32, "bool": torch.bool, "i64": torch.int64}

OPERATORS = (
    "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv", "itruediv", "floordiv",
    "rfloordiv", "ifloordiv", "mod", "rmod", "imod", "pow", "rpow", "ipow", "matmul", "rmatmul", "imatmul", "and",
    "rand", "iand", "or", "ror", "ior", "xor", "rxor", "ixor", "lshift", "rshift", "rlshift", "rrshift", "ilshift",
    "irshift", "neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "getitem", "setitem", "len", "bool",
    "int", "float", "complex", "index", "contains", "array", "format",
)  # fmt: skip
"""The special methods that are operators of torch."""


def meta_tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor without elements."""
    with torch._C.DisableTorchFunction():
        return torch.empty(shape, dtype=dtype, device="meta")


def meta_of(x: torch.Tensor) -> torch.Tensor:
    """`x` without its elements."""
    with torch._C.DisableTorchFunction():
        return x.detach().to("meta")


class TorchTensor(Operand):
    """A tensor of the node that is being traced, with torch's methods."""

    __slots__ = ("_cortex_frozen", "_cortex_held", "_cortex_meta", "_cortex_viewed")

    _cortex_held: Content | View
    _cortex_meta: torch.Tensor
    _cortex_frozen: str
    _cortex_viewed: bool

    def __init__(self, held: Content | View, meta: torch.Tensor | None = None, frozen: str = "") -> None:
        """`frozen` says why it must not be changed in place, where it must not."""
        if meta is None:
            content = held.read(held.base._cortex_content()) if isinstance(held, View) else held
            dtype = torch.int64 if isinstance(content, Integers) else DTYPES[content.dtype]
            if isinstance(content, Value) and content.dtype == "i64" and not isinstance(held, View):
                held = integers([content], content.shape)
            meta = meta_tensor(content.shape, dtype)
        self._cortex_held = held
        self._cortex_meta = meta
        self._cortex_frozen = frozen
        self._cortex_viewed = False

    @property
    def _cortex_shape(self) -> tuple[int, ...]:
        return tuple(self._cortex_content().shape)

    def _cortex_content(self) -> Content:
        """The elements as they are now."""
        held = self._cortex_held
        return held.read(held.base._cortex_content()) if isinstance(held, View) else held

    def _cortex_value(self) -> Value:
        return as_value(self._cortex_content())

    def _cortex_assign(self, content: Content) -> None:
        """Change the elements, here and in all tensors that share them."""
        held = self._cortex_held
        if self._cortex_frozen:
            raise fail(f"{self._cortex_frozen} is changed in place. Change a copy: x = x.clone().")
        if content.shape != self._cortex_shape:
            content = broadcast(content, self._cortex_shape)
        if isinstance(held, View):
            held.base._cortex_assign(held.write(held.base._cortex_content(), content))
        else:
            self._cortex_held = content

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Every function of torch that gets a symbolic tensor."""
        return call(function, *args, **(kwargs or {}))

    @property  # type: ignore[misc]  # object's can also be set
    def __class__(self) -> type:
        return torch.Tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_cortex") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"'Tensor' object has no attribute '{name}'")
        found = getattr(torch.Tensor, name)
        return partial(call, found, self) if callable(found) else call(found.__get__, self)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_cortex"):
            raise fail(f"the attribute '{name}' of a tensor is set here. Change its elements: x[...] = value.")
        object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(call(torch.Tensor.unbind, self))

    def __repr__(self) -> str:
        return f"<cortex torch tensor: {self._cortex_meta.dtype}{list(self._cortex_meta.shape)}>"

    def __reversed__(self) -> NoReturn:
        call(torch.Tensor.__reversed__, self)
        raise AssertionError("not supported")

    __hash__ = object.__hash__


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of torch gives for symbolic arguments."""
    dispatch = TORCH.get()
    if dispatch is None:
        raise fail("a tensor of a model that is being compiled is used after that. Return what you need from forward.")
    return dispatch(function, args, kwargs)


def _operator(name: str) -> Any:
    function = getattr(torch.Tensor, f"__{name}__", None)

    def operator(self: Any, *args: Any) -> Any:
        return call(function, self, *args)

    operator.__name__ = f"__{name}__"
    return operator


for _name in OPERATORS:
    setattr(TorchTensor, f"__{_name}__", _operator(_name))
