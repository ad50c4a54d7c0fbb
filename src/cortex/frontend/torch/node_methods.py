"""Methods of nodes and of texts that nodes hold, before the user's code calls them."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from cortex.frontend.spans import fail, is_library
from cortex.frontend.torch.calls import said
from cortex.frontend.torch.categories import PLAIN
from cortex.frontend.torch.keyed import is_key, reached
from cortex.frontend.torch.steps import Called, Steps

if TYPE_CHECKING:
    from cortex.frontend.torch.standins import NodeField, TorchNode


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
            with b.inside_method(key, function.__code__, self._owner._cortex_steps):
                return b.model.entry.of_node(function)(self._owner, *args, **kwargs)
        if len(args) == 1 and not kwargs and is_key(args[0]):
            return reached(b, "called", self._steps, args[0])
        if kwargs or not all(isinstance(arg, (*PLAIN, type(None))) for arg in args):
            raise fail(
                f"{said(self._steps)}(...) is called with arguments that are no constants, and it cannot be traced: "
                "it is not Python code, or goes through the whole structure. Give it constants, or none."
            )
        return present(b, (*self._steps, Called(args)))


def _is_plain(function: types.FunctionType) -> bool:
    """Is it the user's, and no generator?"""
    return not is_library(function.__code__.co_filename) and not inspect.isgeneratorfunction(function)
