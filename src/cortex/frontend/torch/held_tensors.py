"""Tensors that a module computes with and that are in no state_dict.

Non-persistent buffers are weights all the same, under their names. Other tensors (plain attributes, items of lists,
what functions close over) are constants of the program, and so are buffers of integers and truth values: code is
compiled for their elements. `compiled_in` tells whether these are as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cortex.frontend.spans import is_library
from cortex.frontend.torch.digest import digest
from cortex.frontend.torch.if_loaded import torchs_own
from cortex.frontend.torch.outside import ClassAttributes
from cortex.frontend.written import names_in

if TYPE_CHECKING:
    from cortex.frontend.torch.entry import Entry

DEPTH = 4
"""Collections and objects inside each other are looked into this far."""
CODE = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, torch.nn.Module)
COLLECTIONS = (dict, list, tuple)
DATA = 10_000
"""Collections of more items are no part of a module: a vocabulary, or examples that a method trains on."""
PLAIN = frozenset((str, bytes, int, float, bool, complex, type(None)))
Held = torch.Tensor | np.ndarray[Any, Any]


def not_persistent(entry: Entry) -> list[str]:
    """Buffers that are weights, but in no state_dict."""
    found = []
    for label, module in entry.modules.items():
        for path, part in module.named_modules(remove_duplicate=False):
            place = ".".join(name for name in (label, path) if name)
            names = sorted(part._non_persistent_buffers_set)
            found += [f"{place}.{name}" if place else name for name in names if part._buffers.get(name) is not None]
    return found


def outside(entry: Entry) -> tuple[str, ...]:
    """All tensors that are in no state_dict."""
    return (*not_persistent(entry), *other_tensors(entry))


def other_tensors(entry: Entry) -> dict[str, Held]:
    """Tensors and arrays that are no parameters and no buffers, by where they are: `scale`, `cell.masks[1]`."""
    found: dict[str, Held] = {}
    seen = {id(tensor) for tensor in entry.weights.values()}
    for place, value in _places(entry):
        for name, tensor in _inside(value, place, seen, DEPTH):
            found.setdefault(name, tensor)
    return found


def digests(entry: Entry) -> dict[str, str]:
    """Digests of all tensors that are in no state_dict, or whose elements may be part of the program."""
    left_out = not_persistent(entry)
    buffers = {name: x for name, x in entry.weights.items() if not x.is_floating_point() or name in left_out}
    return {name: digest(tensor) for name, tensor in (other_tensors(entry) | buffers).items()}


def compiled_in(entry: Entry, found: dict[str, str]) -> dict[str, str]:
    """Of the digests that were `found`, those of tensors that traces have read, as far as is known."""
    return {name: text for name, text in found.items() if name not in entry.weights or name in entry.buffers_read}


def _places(entry: Entry) -> Iterator[tuple[str, Any]]:
    for label, module in entry.modules.items():
        for path, part in module.named_modules():
            prefix = "".join(f"{name}." for name in (label, path) if name)
            own = {name: value for name, value in vars(part).items() if name not in torchs_own()}
            yield from ((prefix + name, value) for name, value in own.items())
            for cls in type(part).__mro__:
                if cls.__module__.split(".")[0] != "torch" and cls is not object:
                    yield from ((f"{cls.__name__}.{name}", value) for name, value in ClassAttributes(cls).items())
    functions = [r.function for r in (*entry.routines.values(), *entry.functions.values())]
    for function in functions:
        code = function.__code__
        found = {name: function.__globals__[name] for name in names_in(code) if name in function.__globals__}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # the cell is empty
                found[name] = cell.cell_contents
        found |= {"default": function.__defaults__, "keyword default": function.__kwdefaults__}
        yield from ((f"{function.__name__}: {name}", value) for name, value in found.items())


def _inside(x: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Held]]:
    if id(x) in seen:
        return
    if isinstance(x, torch.Tensor | np.ndarray):
        seen.add(id(x))
        yield name, x
        return
    if depth == 0 or isinstance(x, CODE) or type(x) in PLAIN or (isinstance(x, COLLECTIONS) and len(x) > DATA):
        return
    seen.add(id(x))
    items: Iterable[tuple[Any, Any]] = ()
    form = "[{!r}]"
    if isinstance(x, dict):
        items = list(x.items())
    elif isinstance(x, list | tuple):
        items = enumerate(x)
    elif hasattr(x, "__dict__") and not is_library(getattr(sys.modules.get(type(x).__module__), "__file__", "") or ""):
        items, form = list(vars(x).items()), ".{}"
    for key, value in items:
        if type(value) not in PLAIN:  # a vocabulary has many
            yield from _inside(value, name + form.format(key), seen, depth - 1)
