"""Constants that calls pass along: collections of them, objects that hold them, functions. Without torch.

An object that is made anew in each call of forward is another one each time; what it holds tells it apart.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from cortex.frontend.spans import fail

FRESH = (dict, list, set)
"""Collections that code passes along to remember results in."""
CONSTANTS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Content:
    """An argument that consists of constants, always the same ones."""

    text: str
    value: Any = field(compare=False)

    @classmethod
    def of(cls, value: Any) -> Content | None:
        """The content of a collection, unless it is empty or holds something else than constants."""
        return cls(repr(value), deepcopy(value)) if value and _is_constant(value) else None

    @classmethod
    def of_object(cls, value: Any) -> Content | None:
        """The content of an object or a function, unless it holds something else than constants."""
        text = _text(value, ())
        return None if text is None else cls(text, copied(value))

    def is_that_of(self, value: Any) -> bool:
        """Has the argument still this content?"""
        return self in (Content.of(value), Content.of_object(value))


def content_of_object(name: str, value: Any) -> Content | None:
    """The content of an argument of a recursive call; None where another object is another argument."""
    found = Content.of_object(value)
    torch = sys.modules.get("torch")
    if found is None and torch is not None and holds(value, torch.Tensor):
        raise fail(
            f"argument '{name}' of a recursive call is a {type(value).__name__} that holds a tensor. Pass the tensor "
            "as an argument of its own."
        )
    return found


def _is_constant(x: Any) -> bool:
    if isinstance(x, dict):
        return all(_is_constant(part) for pair in x.items() for part in pair)
    if isinstance(x, list | tuple | set):
        return all(map(_is_constant, x))
    return type(x) in CONSTANTS


def _text(x: Any, within: tuple[int, ...]) -> str | None:
    """Equal for objects of the same class that hold the same; None where that cannot be told."""
    if type(x) in CONSTANTS:
        return repr(x)
    if _is_known_by_itself(x):
        return f"<{id(x)}>"
    held = parts(x)
    if held is None or id(x) in within:  # it contains itself
        return None
    what, items = held
    texts = [_text(item, (*within, id(x))) for item in items]
    return None if None in texts else f"{what}({', '.join(map(str, texts))})"


def parts(x: Any) -> tuple[str, list[Any]] | None:
    """What tells objects like this one apart from others, and what it holds; None where that cannot be told."""
    kind = type(x)
    if kind is dict:
        return "dict", [part for pair in x.items() for part in pair]
    if kind in (list, tuple) or (issubclass(kind, tuple) and hasattr(kind, "_make")):
        return f"{id(kind)}", list(x)
    if kind is MethodType:
        return "method", [x.__func__, x.__self__]
    if kind is FunctionType:
        cells = [cell.cell_contents for cell in x.__closure__ or () if cell != CellType()]
        return f"function {id(x.__code__)}", [*cells, x.__defaults__, x.__kwdefaults__]
    if kind is partial:
        return "partial", [x.func, x.args, x.keywords]
    return (f"object {id(kind)}", [dict(sorted(vars(x).items()))]) if _is_plain(kind) else None


def holds(x: Any, kind: type, within: tuple[int, ...] = ()) -> bool:
    """Is this an object of a kind, or does it hold one?"""
    if isinstance(x, kind):
        return True
    held = None if id(x) in within or _is_known_by_itself(x) else parts(x)
    return held is not None and any(holds(item, kind, (*within, id(x))) for item in held[1])


def _is_known_by_itself(x: Any) -> bool:
    """Is this a thing that is there once: a class, a function of C, a module of Python or of torch?"""
    torch = sys.modules.get("torch")
    things: tuple[type, ...] = (type, Enum, BuiltinFunctionType, ModuleType)
    return isinstance(x, things if torch is None else (*things, torch.nn.Module, torch.dtype, torch.device))


def _is_plain(kind: type) -> bool:
    """Do objects of a class hold everything in their `__dict__`?"""
    bases = [base for base in kind.__mro__ if base not in (object, SimpleNamespace)]
    made_here = all(base.__flags__ & HEAP and not base.__dict__.get("__slots__") for base in bases)
    return made_here and kind.__dictoffset__ != 0


HEAP = 1 << 9
"""The flag of classes that Python code has made, rather than C."""


def copied(x: Any) -> Any:
    """A copy of what calls could change; what is there once stays itself."""
    kind: Any = type(x)
    if kind in CONSTANTS or _is_known_by_itself(x) or kind in (MethodType, FunctionType, partial):
        return x
    if kind is dict:
        return {key: copied(value) for key, value in x.items()}
    if kind in (list, tuple):
        return kind(map(copied, x))
    if issubclass(kind, tuple):
        return kind._make(map(copied, x))
    made = kind.__new__(kind)
    vars(made).update({key: copied(value) for key, value in vars(x).items()})
    return made
