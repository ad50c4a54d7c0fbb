"""Objects that code may write to, given back as they were: attributes, collections, tensors."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

import numpy as np

from cortex.frontend.torch.if_loaded import is_torch_module, is_torch_tensor, torch_if_loaded

MOST_OBJECTS = 50_000
MOST_BYTES = 1 << 26
IMMUTABLE = (str, bytes, int, float, complex, bool, type(None), np.generic, type, types.ModuleType)
CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
COLLECTIONS = (dict, list, set, deque)
ABSENT = object()

Undo = Callable[[], None]


class TooMany(Exception):
    """There is more to keep than a run of the code is worth."""


@contextmanager
def kept_objects(roots: list[Any]) -> Iterator[None]:
    """Whatever is written to objects that the roots lead to is undone; TooMany where they are very many."""
    undo = _kept(roots)
    try:
        yield
    finally:
        for each in undo:
            each()


@contextmanager
def kept_collections(collections: list[Any]) -> Iterator[None]:
    """The same for what collections themselves hold."""
    undo = [_collection(x, kind) for x in collections for kind in COLLECTIONS if isinstance(x, kind)]
    try:
        yield
    finally:
        for each in undo:
            each()


def closed_over(functions: Iterable[Any]) -> list[Any]:
    """The collections that functions take from the scopes around them."""
    cells = [cell for f in functions for cell in getattr(f, "__closure__", None) or ()]
    held = [cell.cell_contents for cell in cells if cell != CellType()]
    return [x for x in held if isinstance(x, COLLECTIONS)]


def _kept(roots: list[Any]) -> list[Undo]:
    seen: dict[int, Any] = {}
    undo: list[Undo] = []
    left = MOST_BYTES
    stack = list(roots)
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, (*IMMUTABLE, *CODE)) or _is_of_torch(x):
            continue
        seen[id(x)] = x
        if isinstance(x, np.ndarray) or is_torch_tensor(x):
            left -= x.nbytes
            undo.append(_data(x) if left >= 0 else _nothing)
        else:
            inside = _inside(x, undo)
            stack += inside
        if len(seen) > MOST_OBJECTS or left < 0:
            raise TooMany
    return undo


def _is_of_torch(x: Any) -> bool:
    """Is it a module, which is kept elsewhere, or something of torch that never changes?"""
    torch = torch_if_loaded()
    return torch is not None and (is_torch_module(x) or isinstance(x, torch.dtype))


def _nothing() -> None:
    """Undo nothing."""


def _inside(x: Any, undo: list[Undo]) -> list[Any]:
    """What an object leads to; what restores it goes to `undo`. Subclasses of collections may say other things."""
    found: list[Any] = []
    for kind in COLLECTIONS:
        if isinstance(x, kind):
            items = _items(x, kind)
            undo.append(_collection(x, kind))
            found += [each for pair in items for each in pair] if kind is dict else items
    if isinstance(x, tuple):
        found += tuple.__iter__(x)
    if isinstance(x, frozenset):
        found += frozenset.__iter__(x)
    held = getattr(x, "__dict__", None)
    if type(held) is dict:
        undo.append(_collection(held, dict))
        found += held.values()
    names = [n for c in type(x).__mro__ for n in _slots(c)]
    if names:
        before = {name: getattr(x, name, ABSENT) for name in names}
        undo.append(lambda: _set_slots(x, before))
        found += [value for value in before.values() if value is not ABSENT]
    return found


def _slots(cls: type) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if isinstance(vars(cls).get(name), types.MemberDescriptorType)]


def _set_slots(x: Any, before: dict[str, Any]) -> None:
    for name, value in before.items():
        if getattr(x, name, ABSENT) is not value:
            object.__delattr__(x, name) if value is ABSENT else object.__setattr__(x, name, value)


def _items(x: Any, kind: Any) -> list[Any]:
    return list(dict.items(x)) if kind is dict else list(kind.__iter__(x))


def _collection(x: Any, kind: Any) -> Undo:
    """Give a collection back what it holds now, in order, where it holds something else by then."""
    before = _items(x, kind)

    def undo() -> None:
        now = _items(x, kind)
        same = (a is b or (kind is dict and a[0] is b[0] and a[1] is b[1]) for a, b in zip(now, before, strict=False))
        if len(now) != len(before) or not all(same):
            kind.clear(x)
            (kind.update if kind in (dict, set) else kind.extend)(x, before)

    return undo


def _data(x: Any) -> Undo:
    if isinstance(x, np.ndarray):
        old = x.copy()
        return lambda: None if not x.flags.writeable or x.tobytes() == old.tobytes() else np.copyto(x, old)
    version, kept = x._version, x.detach().clone()

    def undo() -> None:
        if x._version != version:
            with torch_if_loaded().no_grad():
                x.copy_(kept)

    return undo
