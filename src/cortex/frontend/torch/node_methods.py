"""Methods of nodes and of texts that nodes hold, before the user's code calls them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cortex.errors import ModelError
from cortex.frontend.spans import fail, is_library
from cortex.frontend.torch.calls import said
from cortex.frontend.torch.categories import PLAIN
from cortex.frontend.torch.steps import Called, Steps
from cortex.frontend.written import names_in

if TYPE_CHECKING:
    from cortex.frontend.torch.standins import NodeField, TorchNode
    from cortex.frontend.torch.tracing import TorchBuilder


CONSTANTS = (*PLAIN, type(None))
ASKED = "asked"
"""Marks methods that are asked of real nodes because they cannot be traced, rather than for their recursion."""


class TextMethod:
    """A method of a text, before it is called."""

    def __init__(self, owner: NodeField, name: str) -> None:
        self._owner = owner
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A field of the node where that can be, else what the method gives for the value of the text."""
        from cortex.frontend.torch.standins import present, tracing

        steps = tracing().model.texts.steps(self._name, args, kwargs)
        if steps is None:
            return getattr(self._owner._cortex_tag(), self._name)(*args, **kwargs)
        return present(tracing(), (*self._owner._cortex_steps, *steps))


class Method:
    """A method of a node, before it is called."""

    def __init__(self, steps: Steps, owner: TorchNode, name: str) -> None:
        self._steps = steps
        self._owner = owner
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on what stands for the node, if it is the user's Python; else ask the real node for its result.

        A method that calls itself on other nodes goes through the whole structure, and is asked for its result too.
        """
        from cortex.frontend.torch.standins import present, tracing

        b = tracing()
        kind = type(self._owner._cortex_sample)
        function = getattr(kind, self._name, None)
        key = (kind, self._name)
        if isinstance(function, types.FunctionType) and key not in b.model.opaque_methods and _is_plain(function):
            with b.inside_method(key, function.__code__, self._owner._cortex_steps), _asked_instead(b, key, args):
                return b.model.entry.of_node(function)(self._owner, *args, **kwargs)
        if (*key, ASKED) in b.model.opaque_methods and not _names(*key).isdisjoint(b.model.written):
            raise fail(
                f"{said(self._steps)}(...) reads what the module stores on nodes, and it cannot be traced. Read that "
                "in the module's own code, and compute with functions of torch."
            )
        if kwargs or not all(isinstance(arg, CONSTANTS) for arg in args):
            raise fail(
                f"{said(self._steps)}(...) is called with arguments that are no constants, and it cannot be traced: "
                "it is not Python code, or goes through the whole structure. Give it constants, or none."
            )
        return present(b, (*self._steps, Called(args)))


@contextmanager
def _asked_instead(b: TorchBuilder, key: tuple[type, str], args: tuple[Any, ...]) -> Iterator[None]:
    """Where a method cannot be traced (`self.box.numpy()`), ask the real node for its result from now on.

    It has to be a function of what the node holds: it gets constants, makes no calls of the module, sets nothing, and
    reads nothing that the module sets.
    """
    before = (len(b.made), len(b._written))
    try:
        yield
    except ModelError:
        is_of_node = (len(b.made), len(b._written)) == before and all(isinstance(arg, CONSTANTS) for arg in args)
        if not is_of_node or not _names(*key).isdisjoint(b.model.written):
            raise
        b.model.opaque_methods |= {key, (*key, ASKED)}
        b.model.restart()


def _names(kind: type, method: str) -> set[str]:
    """The names in a method, and in the methods and functions of the user's that it names."""
    found: set[str] = set()
    todo = [getattr(kind, method, None)]
    while todo:
        member = todo.pop()
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, types.FunctionType) and not is_library(function.__code__.co_filename):
            names = set(names_in(function.__code__)) - found
            found |= names
            todo += [x for name in names for x in (getattr(kind, name, None), function.__globals__.get(name))]
    return found


def _is_plain(function: types.FunctionType) -> bool:
    """Is it the user's, and no generator?"""
    return not is_library(function.__code__.co_filename) and not inspect.isgeneratorfunction(function)
