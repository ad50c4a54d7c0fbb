"""The tensors of torch, as the language of modules (language.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch

from cortex.frontend.builder import Value
from cortex.frontend.pointwise import as_float
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.entry import Entry
from cortex.frontend.torch.forms import FLOAT
from cortex.frontend.torch.language import Language, chosen
from cortex.frontend.torch.mode import symbolic, tracing_mode
from cortex.frontend.torch.node_field import IndexableTorchNodeField, TorchNodeField
from cortex.frontend.torch.number import as_field, as_number, known
from cortex.frontend.torch.request_tensor import RequestTensor, RowByRow, passed_on
from cortex.frontend.torch.row_wise import Rows
from cortex.frontend.torch.state_types import element_type, exact, of_type
from cortex.frontend.torch.tensor import TorchTensor


def from_numpy(x: Any) -> Any:
    """What `torch.from_numpy` means: it takes real arrays only, and says nothing to what stands for one."""
    sample = x._cortex_sample() if isinstance(x, Attribute) else x
    if isinstance(x, RequestTensor):
        return x
    if isinstance(x, TorchTensor) or (x is not sample and isinstance(sample, np.ndarray)):
        return torch.as_tensor(x)
    return torch.from_numpy(sample)


class _Torch(ModuleType):
    """`torch` with that meaning."""

    from_numpy = staticmethod(from_numpy)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _is_scalar(x: Any) -> bool:
    return isinstance(x, TorchTensor) and not x.shape


def _as_tensor(x: Any) -> Any:
    return x if isinstance(x, TorchTensor) else torch.tensor(float(x))


class TorchTensors(Language):
    """Tensors of torch, and of NumPy where nodes hold them."""

    fields = (TorchNodeField, IndexableTorchNodeField)
    meanings = {  # noqa: RUF012 - never changed
        "max": chosen(max, _is_scalar, lambda x, y: torch.maximum(_as_tensor(x), _as_tensor(y))),
        "min": chosen(min, _is_scalar, lambda x, y: torch.minimum(_as_tensor(x), _as_tensor(y))),
    }
    functions = ((torch.from_numpy, from_numpy),)
    modules = ((torch, _Torch("torch")),)

    @contextmanager
    def tracing(self, entry: Entry) -> Iterator[None]:
        """Let torch hand every call to the table of operators."""
        with tracing_mode(entry.params, entry.buffers_read), RowByRow():
            yield

    def is_tensor(self, x: Any) -> bool:
        """Is it a tensor, an array, or a field of a node?"""
        return isinstance(x, torch.Tensor | Attribute | np.ndarray | RequestTensor)

    def element_type(self, x: Any) -> str:
        """The element type of a tensor; Python's numbers and arrays count as floats."""
        if not isinstance(x._cortex_sample() if isinstance(x, Attribute) else x, torch.Tensor):
            return FLOAT
        return element_type(self._symbolic(x))

    def value(self, x: Any) -> Value:
        """A tensor, an array or a field as a value of the graph."""
        return as_float(exact(self._symbolic(x))._cortex_value())

    def _symbolic(self, x: Any) -> Any:
        if isinstance(x, RequestTensor):
            return x._cortex_tensor()
        return symbolic(x)

    def of_type(self, state: Value, kind: str | None) -> TorchTensor:
        """A state as the tensor of the element type that was stored in it."""
        return of_type(state, kind)

    def request_tensor(self, name: str, sample: Any, is_whole: bool) -> RequestTensor:
        """What stands for a tensor that is given beside the structure; by rows, or as a whole."""
        is_whole = is_whole or not len(sample.shape)
        key = ("whole",) if is_whole else (Rows("#0"), (), torch.float32)
        return passed_on(name, key, lambda _: sample)

    def passed_on(self, name: str, key: tuple[Any, ...], sample: Callable[[str], Any]) -> RequestTensor:
        """What stands for such a tensor in a call that is passed it."""
        return passed_on(name, key, sample)

    def known(self, x: Any) -> Any:
        """`x` with numbers in place of what stands for them."""
        return known(x)

    def as_field(self, x: Any) -> Any:
        """The field that a number is, and anything else itself."""
        return as_field(x)

    def as_number(self, field: Any) -> Any:
        """The number that a field holds."""
        return as_number(field)

    def refusal(self, x: Any, name: str) -> str | None:
        """What to say of functions that torch.jit has compiled."""
        if not isinstance(x, torch.jit.ScriptFunction):
            return None
        return f"{name} was compiled by torch.jit.script, which hides what it does. Leave that out."


TORCHS = TorchTensors()
