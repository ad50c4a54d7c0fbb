"""Methods and functions of the user's that may be called on nodes, and how such calls are seen while tracing.

While a module is traced, the methods that the user's classes define are shadowed in the instances by functions that
ask the trace what to do. Whoever calls them outside of a trace, in another thread too, gets the method itself.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import _lru_cache_wrapper, cached_property, wraps
from types import FunctionType, MethodType
from typing import Any

from cortex.frontend.builder import builder, is_tracing
from cortex.frontend.spans import is_library
from cortex.frontend.standin import Attribute
from cortex.frontend.torch.if_loaded import torch_if_loaded

Call = Callable[["Routine", tuple[Any, ...], dict[str, Any]], Any]
RECORDER: ContextVar[Call | None] = ContextVar("cortex_recorder", default=None)
"""Makes calls of routines while a module runs for real, see record.py."""


@dataclass(frozen=True, eq=False)
class Routine:
    """A method of one module, or a function."""

    key: Hashable
    label: str
    original: Callable[..., Any]
    function: FunctionType

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters, without `self`."""
        return inspect.signature(self.original)

    @property
    def tag(self) -> str:
        """What the tags of its calls begin with."""
        return self.label.replace(".", "_")

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by parameter, defaults included."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def run(self, arguments: dict[str, Any]) -> Any:
        """Call it with arguments by parameter."""
        bound = inspect.BoundArguments(self.signature, OrderedDict(arguments))
        return self.original(*bound.args, **bound.kwargs)

    @cached_property
    def shadow(self) -> Callable[..., Any]:
        """What is called in its place; always the same, for code may pass it along."""
        return shadow(self)


def shadow(routine: Routine) -> Callable[..., Any]:
    """What is called in place of a routine."""

    @wraps(routine.original)
    def called(*args: Any, **kwargs: Any) -> Any:
        call: Call | None = getattr(builder(), "call", None) if is_tracing() else RECORDER.get()
        return routine.original(*args, **kwargs) if call is None else call(routine, args, kwargs)

    return called


def routines_of(module: Any, rebuilt: Callable[[FunctionType], FunctionType]) -> dict[tuple[int, str], Routine]:
    """Every method that the user's classes among the module's parts define."""
    found: dict[tuple[int, str], Routine] = {}
    for path, part in module.named_modules():
        for name, function in _methods(type(part)).items():
            if name not in vars(part):
                full = f"{path}.{name}" if path else name
                key = (id(part), name)
                found[key] = Routine(key, full.removesuffix(".forward"), MethodType(rebuilt(function), part), function)
    return found


def is_users(function: FunctionType) -> bool:
    """Is it the user's, be it decorated by a library?"""
    unwrapped = inspect.unwrap(function)
    return isinstance(unwrapped, FunctionType) and not is_library(unwrapped.__code__.co_filename)


def unwrapped(x: Any) -> Any:
    """What `functools.lru_cache` is around: each call is computed once anyway."""
    return inspect.unwrap(x) if isinstance(x, _lru_cache_wrapper) else x


def _methods(kind: type) -> dict[str, FunctionType]:
    found: dict[str, FunctionType] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.split(".")[0] == "torch" or base is object:
            continue
        for name, member in vars(base).items():
            special = name.startswith("__") and name.endswith("__")
            member = unwrapped(member)
            if isinstance(member, FunctionType) and not special and is_users(member):
                found[name] = member
    return found


def _as_text(key: Any) -> Any:
    return key._cortex_tag() if isinstance(key, Attribute) else key


@contextmanager
def shadowed(modules: Iterable[Any], routines: dict[tuple[int, str], Routine]) -> Iterator[None]:
    """Let calls of the routines be seen."""
    parts = {id(part): part for module in modules for part in module.modules()}
    for (owner, name), routine in routines.items():
        vars(parts[owner])[name] = routine.shadow
    for part in parts.values():
        if isinstance(
            part, torch_if_loaded().nn.ParameterDict
        ):  # its items are attributes, whose names have to be real texts
            vars(part)["_key_to_attr"] = _as_text
    try:
        yield
    finally:
        for owner, name in routines:
            vars(parts[owner]).pop(name, None)
