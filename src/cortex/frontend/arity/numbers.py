"""Whole numbers that code might compare a number of children with.

They are the constants of the code, and what it reads from around it: attributes, global names, defaults, the lengths
of collections and tensors. A collection of very many numbers is data, such as a vocabulary, and is not looked into.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from cortex.frontend.spans import is_library

LARGE = 64
"""Collections with more items are data."""
MOST_OBJECTS = 20_000
OF_CLASSES = ("__module__", "__qualname__", "__doc__", "__firstlineno__")
SMALL = 16
"""Of numbers up to this, multiples come soon enough."""
INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))


def numbers_in(roots: Iterable[Any]) -> set[int]:
    """The numbers in these functions and objects, and in what they hold and refer to."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(roots)
    while stack and len(seen) < MOST_OBJECTS:
        x = stack.pop()
        if type(x) is int:
            found.add(abs(x))
        elif type(x) is float:
            found |= {int(abs(x)), int(abs(x)) + 1} if abs(x) < 1e9 else set()
        elif type(x) is str:
            found |= {int(digits) for digits in re.findall(r"\d{1,9}", x[:200])}
        elif id(x) not in seen:
            seen.add(id(x))
            stack += _held(x, found)
    return found


def near(numbers: set[int], lo: int, hi: int) -> list[int]:
    """The numbers from `lo` to `hi` that code with these might tell from others.

    They are the numbers themselves and those next to them, their halves, and the multiples of large ones.
    """
    close = {y for x in numbers for y in range(x - 2, x + 3)} | {x // 2 for x in numbers}
    multiples = {y for x in numbers for y in (range(x, hi + 1, x) if x > SMALL else (2 * x,))}
    return sorted(y for y in close | multiples if lo <= y <= hi)


def _held(x: Any, found: set[int]) -> Iterator[Any]:
    if type(x).__module__.partition(".")[0] == "cortex":  # a compiled model that a global name holds
        return
    if isinstance(x, FunctionType):
        if _is_installed(x.__code__.co_filename):
            return
        yield from (x.__code__, x.__defaults__, x.__kwdefaults__)
        for cell in x.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # empty
                continue
        for code in _codes(x.__code__):
            for name in code.co_names:
                value = x.__globals__.get(name)
                yield value
                if isinstance(value, ModuleType) and not _is_installed(getattr(value, "__file__", None)):
                    yield from (vars(value)[n] for n in code.co_names if n in vars(value))
    elif isinstance(x, CodeType):
        yield from x.co_consts
        yield from x.co_names
    elif isinstance(x, MethodType):
        yield from (x.__func__, x.__self__)
    elif isinstance(x, list | tuple | set | frozenset | dict):
        found.add(len(x))
        if len(x) <= LARGE:
            yield from list(x)
            yield from list(x.values()) if isinstance(x, dict) else ()
    elif type(x).__module__.split(".")[0] in ("torch", "numpy") and isinstance(getattr(x, "shape", None), tuple):
        found |= {n for n in tuple(x.shape) if isinstance(n, int)}
        if "float" not in str(x.dtype) and 0 < _size(x) <= LARGE:
            yield from x.reshape(-1).tolist()
    elif isinstance(x, type):
        if _is_users(x):
            yield from (value for name, value in vars(x).items() if name not in OF_CLASSES)
    elif not isinstance(x, ModuleType) and hasattr(x, "__dict__"):
        yield type(x)
        yield from list(vars(x).values())
    elif hasattr(x, "__func__") or hasattr(x, "fget"):
        yield getattr(x, "__func__", None) or getattr(x, "fget", None)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _size(x: Any) -> int:
    size = 1
    for n in x.shape:
        size *= int(n)
    return size


def _is_users(cls: type) -> bool:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return cls.__module__ != "builtins" and not _is_installed(file)


def _is_installed(file: str | None) -> bool:
    """Is this file no code of the user's?"""
    return is_library(file or "") or any(part in (file or "") for part in INSTALLED)
