"""Tracing torch code: which calls are symbolic, and what those without a symbolic argument give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from cortex.frontend.foreign import TORCH
from cortex.frontend.spans import fail
from cortex.frontend.standin import ATTRIBUTE, Attribute
from cortex.frontend.tensor import Operand
from cortex.frontend.torch.attribute import torch_attribute
from cortex.frontend.torch.decompose import decomposed
from cortex.frontend.torch.dispatch import Dispatcher
from cortex.frontend.torch.number import Number, as_torch_takes
from cortex.frontend.torch.operators.factories import checked_placement
from cortex.frontend.torch.operators.metadata import CONSTANT, OF_META
from cortex.frontend.torch.operators.table import functions
from cortex.frontend.torch.refusals import RANDOM, REMEDIES, Unsupported, operator_name
from cortex.frontend.torch.tensor import TorchTensor, meta_of

FACTORIES = (
    "zeros", "ones", "empty", "full", "tensor", "as_tensor", "scalar_tensor", "eye", "zeros_like", "ones_like",
    "full_like", "empty_like", "linspace",
)  # fmt: skip
"""What they make may be changed in place with computed values, hence is symbolic from the start."""
NEW = ("new", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")


class TracingMode(TorchFunctionMode):
    """Sees every call of torch while it is active."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self.dispatcher = dispatcher

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Symbolic where an argument is, or where it is a parameter; for real otherwise."""
        args, kwargs = as_torch_takes(function, args, kwargs or {})
        given = (*args, *kwargs.values())
        if function not in _facts():
            self._note(given)
        if any(map(self._is_symbolic, given)) or (function not in _facts() and any(map(self._is_parameter, given))):
            written = None if function in functions() else decomposed(function)
            if function is torch.Tensor.__iter__:
                return iter(self.dispatcher(torch.Tensor.unbind, args, kwargs))
            if written is None:
                return self.dispatcher(function, args, kwargs)
            given = [self._as_tensor(x) for x in args], {name: self._as_tensor(x) for name, x in kwargs.items()}
            # Torch has put the mode aside for this call, but the function's own calls are to be seen.
            with self, self.dispatcher.within(function):
                return written(*given[0], **given[1])
        if getattr(function, "__name__", "") in REMEDIES[RANDOM].split() and not _is_off(args, kwargs):
            raise fail(f"{operator_name(function)}: {RANDOM}")
        if function not in _makers():
            return function(*args, **kwargs)
        try:
            checked_placement(kwargs)
        except Unsupported as error:
            raise fail(f"{operator_name(function)}: {error}") from None
        made = function(*args, **kwargs)
        if not isinstance(made, torch.Tensor) or not made.is_floating_point():
            return made
        with torch._C.DisableTorchFunction():
            return self.dispatcher.noted(TorchTensor(self.dispatcher.constant(made), meta_of(made)))

    def _as_tensor(self, x: Any) -> Any:
        """A field of a node or a number as the tensor that torch's own code takes it for."""
        if not isinstance(x, Attribute | Number):
            return x
        with torch._C.DisableTorchFunction():
            return self.dispatcher.symbolic(x)

    def _is_parameter(self, x: Any) -> bool:
        if isinstance(x, list | tuple):
            return any(map(self._is_parameter, x))
        return id(x) in self.dispatcher.params and x.is_floating_point()

    def _note(self, x: Any) -> None:
        """Remember which buffers of integers are read."""
        if isinstance(x, list | tuple):
            for each in x:
                self._note(each)
        elif isinstance(x, slice):
            self._note((x.start, x.stop, x.step))
        elif id(x) in self.dispatcher.params and not x.is_floating_point():
            self.dispatcher.read.add(self.dispatcher.params[id(x)])

    def _is_symbolic(self, x: Any) -> bool:
        match x:
            case Operand() | Number():
                return True
            case torch.Tensor():
                return x.is_meta or self.dispatcher.tokens.are_in(x)
            case list() | tuple():
                return any(map(self._is_symbolic, x))
            case slice():
                return any(map(self._is_symbolic, (x.start, x.stop, x.step)))
        return False


def _is_off(args: Any, kwargs: dict[str, Any]) -> bool:
    """Is this dropout in evaluation?"""
    return any(x is False for x in (kwargs.get("training"), kwargs.get("train"), *args))


@lru_cache(maxsize=1)
def _facts() -> frozenset[Any]:
    """What is asked of a parameter that does not depend on its elements."""
    names = (*OF_META, *CONSTANT, "__len__", "__hash__", "__repr__", "get_device", "requires_grad_")
    found = [getattr(torch.Tensor, name) for name in names if hasattr(torch.Tensor, name)]
    own = [torch.numel, torch.is_floating_point, torch.is_complex]
    return frozenset([*(each if callable(each) else each.__get__ for each in found), *own])


@lru_cache(maxsize=1)
def _makers() -> frozenset[Any]:
    own = [getattr(torch, name) for name in FACTORIES]
    return frozenset([*own, *(getattr(torch.Tensor, name) for name in NEW)])


@contextmanager
def tracing_mode(params: Mapping[int, str], read: set[str] | None = None) -> Iterator[None]:
    """Trace torch code; `params` gives the weight name of a real parameter or buffer by its id.

    Buffers of integers and truth values are added to `read` where code looks at their elements.
    """
    dispatcher = Dispatcher(params, set() if read is None else read)
    attribute = ATTRIBUTE.set(torch_attribute)
    token = TORCH.set(dispatcher)
    try:
        with TracingMode(dispatcher):
            yield
    finally:
        TORCH.reset(token)
        ATTRIBUTE.reset(attribute)


def symbolic(x: Any) -> Any:
    """`x` as it is in the graph, while torch code is traced: parameters by name, other real tensors by content."""
    dispatcher = TORCH.get()
    assert isinstance(dispatcher, Dispatcher), "called while tracing only"
    with torch._C.DisableTorchFunction():
        return dispatcher.symbolic(x)
