"""Symbolic torch tensors: what the user's torch code computes with while it is traced.

A `TorchTensor` is a torch.Tensor without elements, on torch's device "meta", whose every use torch hands to the
dispatcher (`__torch_function__`). Beside what it holds it has a plain *meta* tensor: shape, strides and element type.
Operators run on the meta tensors too, so that torch itself checks arguments and says what is a view of what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from cortex.frontend.builder import Value
from cortex.frontend.foreign import TORCH, as_operator, math_function
from cortex.frontend.spans import fail
from cortex.frontend.tensor import Operand
from cortex.frontend.torch.content import Content, Integers, as_value, broadcast, integers
from cortex.frontend.torch.refusals import MEMORY
from cortex.frontend.torch.tokens import is_constructing
from cortex.frontend.torch.views import View

DTYPES = {"f32": torch.float32, "bool": torch.bool, "i64": torch.int64}
GRADIENTS = ("requires_grad", "grad")
"""Attributes of tensors that matter in training only."""


def meta_tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor without elements."""
    with torch._C.DisableTorchFunction():
        return torch.empty(shape, dtype=dtype, device="meta")


def meta_of(x: torch.Tensor) -> torch.Tensor:
    """`x` without its elements."""
    with torch._C.DisableTorchFunction():
        return x.detach().to("meta")


class TorchTensor(torch.Tensor, Operand):  # type: ignore[misc]  # the operators are torch's
    """A tensor of the node that is being traced, with torch's methods."""

    _cortex_held: Content | View
    _cortex_meta: torch.Tensor
    _cortex_frozen: str
    _cortex_viewed: bool
    _cortex_on_change: Callable[[], None] | None
    """Called before its elements or its shape are changed in place."""
    _cortex_is_numpy: bool
    """Is it an array of NumPy's in the user's code?"""
    _cortex_field: Any
    """The field that it is, where Python computes with it in more than single precision."""

    def __new__(cls, held: Content | View, meta: torch.Tensor | None = None, frozen: str = "") -> TorchTensor:
        """`frozen` is what to say to who changes it in place, where that must not be."""
        if meta is None:
            content = held.read(held.base._cortex_content()) if isinstance(held, View) else held
            dtype = torch.int64 if isinstance(content, Integers) else DTYPES[content.dtype]
            meta = meta_tensor(content.shape, dtype)
        with torch._C.DisableTorchFunction():
            made = meta.as_subclass(cls)
        if isinstance(held, Value) and held.dtype == "i64":
            held = integers([held], held.shape)
        made._cortex_held = held
        made._cortex_meta = meta
        made._cortex_frozen = frozen
        made._cortex_viewed = False
        made._cortex_on_change = None
        made._cortex_is_numpy = False
        made._cortex_field = None
        return made

    def __init__(self, *_: object, **__: object) -> None:
        """Everything is set already."""

    @property
    def _cortex_shape(self) -> tuple[int, ...]:
        return tuple(self._cortex_content().shape)

    def _cortex_content(self) -> Content:
        """The elements as they are now."""
        held = self._cortex_held
        return held.read(held.base._cortex_content()) if isinstance(held, View) else held

    def _cortex_value(self) -> Value:
        return as_value(self._cortex_content())

    def _cortex_may_change(self) -> None:
        """Refuse a change in place, or tell of it, where somebody else can see it."""
        if self._cortex_on_change is not None:
            self._cortex_on_change()
        if self._cortex_frozen:
            raise fail(self._cortex_frozen)

    def _cortex_assign(self, content: Content) -> None:
        """Change the elements, here and in all tensors that share them."""
        held = self._cortex_held
        self._cortex_may_change()
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

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """`ndarray + tensor` is the operator of tensors; np.tanh(tensor) is refused."""
        found = as_operator(ufunc.__name__, inputs, _is_ours) if method == "__call__" else NotImplemented
        if found is NotImplemented:
            raise fail(of_numpy(ufunc.__name__))
        return found

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise fail(of_numpy(function.__name__))

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_cortex"):
            object.__setattr__(self, name, value)
        elif name not in GRADIENTS:
            raise fail(f"the attribute '{name}' of a tensor is set here. Change its elements: x[...] = value.")

    def set_(self, *_: Any, **__: Any) -> Any:
        """Refused here, as torch does not hand it to the dispatcher."""
        raise fail(f"Tensor.set_: {MEMORY}")

    def __float__(self) -> float:
        tokens: Any = getattr(TORCH.get(), "tokens", None)
        is_token = tokens is not None and is_constructing()
        function = math_function()
        if function is not None and hasattr(torch, function):
            raise fail(
                f"math.{function} of a computed value, which is a tensor: it would compute now, and a module is "
                f"compiled before any value is known. Write torch.{function}; of a field, "
                f"torch.{function}(torch.tensor(node.x))."
            )
        return float(tokens.float(self) if is_token else call(torch.Tensor.__float__, self))

    def __index__(self) -> int:
        tokens: Any = getattr(TORCH.get(), "tokens", None)
        is_token = tokens is not None and isinstance(self._cortex_content(), Integers) and is_constructing()
        return int(tokens.whole(self) if is_token else call(torch.Tensor.__index__, self))

    def _cortex_index(self) -> Any:
        """The only element, of a tensor of integers."""
        held = self._cortex_content()
        assert isinstance(held, Integers)
        return held.elements.item()

    def __iter__(self) -> Iterator[Any]:
        return iter(call(torch.Tensor.unbind, self))

    def __repr__(self) -> str:  # type: ignore[override]
        return f"<cortex torch tensor: {self._cortex_meta.dtype}{list(self._cortex_meta.shape)}>"

    __hash__ = object.__hash__


def of_numpy(name: str) -> str:
    """What to say to who computes with NumPy."""
    remedy = f"Write torch.{name}, of torch.tensor(node.x)" if hasattr(torch, name) else "Use functions of torch"
    return (
        f"np.{name} of what a node holds or the module computes: it would compute now, and a module is compiled before "
        f"any value is known. {remedy}."
    )


def _is_ours(x: object) -> bool:
    return isinstance(x, TorchTensor)


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of torch gives for symbolic arguments."""
    dispatch = TORCH.get()
    if dispatch is None:
        raise fail("a tensor of a model that is being compiled is used after that. Return what you need from forward.")
    return dispatch(function, args, kwargs)
