"""Do the fields of a value that was read have the types that its class declares?"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from cortex.ilir import ir as ilir
from cortex.ir import scalar
from cortex.ir.step import Step

Check: TypeAlias = Callable[[Any], bool]

LARGEST = 1 << 62
"""Larger integers are no sizes, numbers or limits of anything that native code is told."""


_KNOWN: dict[type[Any], tuple[Check, ...]] = {}


def checks_of(cls: type[Any], names: tuple[str, ...]) -> tuple[Check, ...]:
    """What says of each field in order whether a value may be in it."""
    if cls not in _KNOWN:
        _KNOWN[cls] = _checks_of(cls, names)
    return _KNOWN[cls]


def _checks_of(cls: type[Any], names: tuple[str, ...]) -> tuple[Check, ...]:
    hints = get_type_hints(cls, localns={**vars(scalar), **vars(ilir)} if cls.__module__ == ilir.__name__ else None)
    return tuple(check_of(hints[name]) for name in names)


def check_of(hint: Any) -> Check:
    """What says whether a value is of a type."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda x: True
    if hint is int:
        return lambda x: type(x) is int and -LARGEST < x < LARGEST
    if hint is float:
        return lambda x: type(x) in (float, int)
    if origin is Literal:
        return lambda x: type(x) is str and x in args
    if origin in (Union, UnionType):
        return _one_of(tuple(map(check_of, args)), args)
    if origin is tuple and args[-1:] == (...,):
        inner = check_of(args[0])
        return lambda x: type(x) is tuple and all(map(inner, x))
    if origin is tuple:
        each = tuple(map(check_of, args))
        return lambda x: (
            type(x) is tuple and len(x) == len(each) and all(fits(y) for fits, y in zip(each, x, strict=True))
        )
    if origin is Step or hint is Step:
        return lambda x: isinstance(x, Step)
    if hint in (str, bool, NoneType):
        return lambda x: type(x) is hint
    return lambda x: isinstance(x, hint)


def _one_of(checks: tuple[Check, ...], args: tuple[Any, ...]) -> Check:
    if all(isinstance(arg, type) and arg not in (int, float, str, bool, NoneType) for arg in args):
        return lambda x: isinstance(x, args)
    return lambda x: any(check(x) for check in checks)
