"""Read the steps of a schedule from text, without running it.

The text is one Python expression, Schedule((step, step, ...)), where a step is a call of a known step's name with
literal arguments. It is parsed, never executed, and its size is limited.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from cortex.errors import ScheduleError
from cortex.ir.step import Step

MOST_STEPS = 10_000
LARGEST_INTEGER = 1 << 31


def parse_steps(text: str, source: str, names: Mapping[str, type[Any]]) -> list[tuple[int, Step[Any]]]:
    """The steps in `text` with their lines, made by the classes `names`; `source` is what messages call the text."""
    try:
        tree = ast.parse(text, source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ScheduleError(f"{source}, line {line}: this is not a Python expression. Write Schedule((...)).") from None
    match tree:
        case ast.Call(func=ast.Name(id="Schedule"), args=[ast.Tuple(elts=items) | ast.List(elts=items)], keywords=[]):
            pass
        case _:
            raise _wrong(source, tree, "a schedule is one call, Schedule((step, step, ...))")
    if len(items) > MOST_STEPS:
        raise _wrong(source, tree, f"a schedule has at most {MOST_STEPS} steps")
    return [(item.lineno, _step(item, source, names)) for item in items]


def _step(e: ast.expr, source: str, names: Mapping[str, type[Any]]) -> Step[Any]:
    known = f"The steps are {', '.join(names)}"
    match e:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in names:
            kind = names[name]
        case ast.Call(func=ast.Name(id=name)):
            raise _wrong(source, e, f"{name!r} is no step. {known}")
        case _:
            raise _wrong(source, e, f"a step is a call such as Split('n', 8). {known}")
    declared = {f.name: str(f.type) for f in fields(kind)}
    if len(args) > len(declared):
        raise _wrong(source, e, f"{name} takes {len(declared)} arguments: {', '.join(declared) or 'none'}")
    given: dict[str, Any] = {}
    pairs = [*zip(declared, args, strict=False), *((k.arg, k.value) for k in keywords)]
    for field, value in pairs:
        if field not in declared or field in given:
            raise _wrong(source, e, f"{name} takes each of these once: {', '.join(declared) or 'nothing'}; not {field}")
        given[field] = _literal(value, source)
        if not _fits(given[field], declared[field]):
            raise _wrong(source, value, f"{field} of {name} must be {_TYPES.get(declared[field], declared[field])}")
    try:
        made: Step[Any] = kind(**given)
    except TypeError:
        raise _wrong(source, e, f"{name} needs {', '.join(declared)}") from None
    return made


def _literal(e: ast.expr, source: str) -> Any:
    """A string, an integer, True, False, None, or a tuple of literals."""
    match e:
        case ast.Constant(value=value) if value is None or isinstance(value, str | bool):
            return value
        case ast.Constant(value=int(value)) if value <= LARGEST_INTEGER:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if value <= LARGEST_INTEGER:
            return -value
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_literal(item, source) for item in items)
        case _:
            what = f"strings, integers up to {LARGEST_INTEGER}, True, False, None and tuples of them"
            raise _wrong(source, e, f"the arguments of a step are literals: {what}")


_TYPES = {
    "str": "a string",
    "int": "an integer",
    "bool": "True or False",
    "str | None": "a string or None",
    "int | None": "an integer or None",
    "tuple[str, ...]": "a tuple of strings",
    "tuple[int, ...]": "a tuple of integers",
}


def _fits(value: Any, declared: str) -> bool:
    """Is a literal of a field's type? Fields with other types check what they get when the step applies."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    match declared:
        case "str":
            return isinstance(value, str)
        case "int":
            return whole
        case "bool":
            return isinstance(value, bool)
        case "str | None":
            return value is None or isinstance(value, str)
        case "int | None":
            return value is None or whole
        case "tuple[str, ...]":
            return isinstance(value, tuple) and all(isinstance(x, str) for x in value)
        case "tuple[int, ...]":
            return isinstance(value, tuple) and all(_fits(x, "int") for x in value)
        case _:
            return True


def _wrong(source: str, e: ast.expr, what: str) -> ScheduleError:
    return ScheduleError(f"{source}, line {e.lineno}: {what}.")
