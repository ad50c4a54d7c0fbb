"""The tensors that traced code computes with: torch's in modules, Cortex's own in model functions.

All else (nodes, calls, what is stored and passed, kinds) is the same for both, and does not load torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend import functions
from cortex.frontend.arity.told import Count
from cortex.frontend.builder import Value
from cortex.frontend.pointwise import as_float
from cortex.frontend.spans import fail
from cortex.frontend.tensor import Operand, Tensor, value_of
from cortex.frontend.torch.forms import FLOAT
from cortex.frontend.torch.standins import IndexableNodeField, NodeField, TorchNode

if TYPE_CHECKING:
    from cortex.frontend.torch.entry import Entry

Meanings = tuple[tuple[Any, Any], ...]


class Language(ABC):
    """What tensors are, and what names of libraries mean, while code of one kind is traced."""

    fields: tuple[type[NodeField], type[NodeField]]
    """What stands for data of nodes; and for data that can be indexed."""
    meanings: Mapping[str, Any] = {}
    """Of built-in names."""
    functions: Meanings = ()
    """Of functions of libraries, under any name."""
    modules: Meanings = ()
    """Of modules of libraries."""
    knows_leaves = False
    """Does `node.is_leaf` mean that there are no children, where nodes have no such attribute?"""

    @abstractmethod
    def tracing(self, entry: Entry) -> AbstractContextManager[Any]:
        """Let operators of tensors make the graph."""

    @abstractmethod
    def is_tensor(self, x: Any) -> bool:
        """Is it a tensor, an array, or a field of a node?"""

    @abstractmethod
    def element_type(self, x: Any) -> str:
        """The element type of a tensor."""

    @abstractmethod
    def value(self, x: Any) -> Value:
        """A tensor, an array or a field as a value of the graph."""

    @abstractmethod
    def of_type(self, state: Value, kind: str | None) -> Any:
        """A state as the tensor of the element type that was stored in it; None is float32."""

    @abstractmethod
    def request_tensor(self, name: str, sample: Any, is_whole: bool) -> Any:
        """What stands for an array that is given beside the structure; by rows, or as a whole."""

    def passed_on(self, name: str, key: tuple[Any, ...], sample: Callable[[str], Any]) -> Any:
        """What stands for such an array in a call that is passed it."""
        raise array_beside(name)

    def known(self, x: Any) -> Any:
        """`x` with numbers in place of what stands for them."""
        return x

    def as_field(self, x: Any) -> Any:
        """The field that a number of children is, and anything else itself."""
        return x.as_field() if type(x) is Count else x

    def as_number(self, field: Any) -> Any:
        """What Python's numbers in a field are to code."""
        return field

    def refusal(self, x: Any, name: str) -> str | None:
        """What to say to who calls this, where it cannot be traced."""
        return None


class OwnTensors(Language):
    """Tensors of Cortex."""

    fields = (NodeField, IndexableNodeField)
    knows_leaves = True

    def tracing(self, entry: Entry) -> AbstractContextManager[Any]:
        """Nothing is needed: operators know that a model is traced."""
        return nullcontext()

    def is_tensor(self, x: Any) -> bool:
        """Is it a tensor, an array, or a field of a node?"""
        return isinstance(x, Operand | np.ndarray) and not isinstance(x, TorchNode)

    def element_type(self, x: Any) -> str:
        """Always float32: what a model function returns is."""
        return FLOAT

    def value(self, x: Any) -> Value:
        """A tensor, an array or a field as a value of the graph."""
        return as_float(value_of(x))

    def of_type(self, state: Value, kind: str | None) -> Tensor:
        """The state."""
        return Tensor(state)

    def request_tensor(self, name: str, sample: Any, is_whole: bool) -> Any:
        """Refuse: arrays of a model function are weights, or fields."""
        raise array_beside(name)


def is_of_request(x: Any) -> bool:
    """Does it stand for a tensor that is given beside the structure?"""
    return getattr(type(x), "_cortex_is_of_request", False)


def array_beside(name: str) -> ModelError:
    """What to say of an array that a model function is given with each structure."""
    return fail(
        f"argument '{name}' is an array that is given beside the structure. Give it as a weight, or put each node's "
        "part of it on the node."
    )


def chosen(
    usual: Callable[..., Any], is_scalar: Callable[[Any], bool], of_tensors: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """`max` or `min`, which compare: of scalars that are computed, it is the operator that chooses."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 else list(args)
        scalars = [x for x in items if is_scalar(x)]
        numbers = [x for x in items if type(x) in (int, float)]
        if kwargs.keys() - {"default"} or not scalars or len(scalars) + len(numbers) < len(items):
            return usual(items, **kwargs)  # a default too is only for no items at all
        return reduce(of_tensors, items)

    return choose


def _is_scalar(x: Any) -> bool:
    return isinstance(x, Tensor) and not x.shape


OwnTensors.meanings = {
    "max": chosen(max, _is_scalar, functions.maximum),
    "min": chosen(min, _is_scalar, functions.minimum),
}
OWN = OwnTensors()
