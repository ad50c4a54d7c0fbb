"""`is` between nodes and `id(node)`: Python answers for the stand-ins without asking them, so they are found in code."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType

from cortex.errors import ModelError
from cortex.frontend.spans import is_library, span_at

FROM_OUTSIDE = ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE")
"""What loads something that is no node: a constant, a class, a function."""


def refuse_identity(function: FunctionType) -> None:
    """Refuse a model, or a function of the user's that it names, that asks whether two objects are one."""
    for code in _codes_of(function, set()):
        at = compares_objects(code)
        asks = (i.offset for i in dis.get_instructions(code) if (i.opname, i.argval) == ("LOAD_GLOBAL", "id"))
        at = next(asks, None) if at is None else at
        if at is not None:
            raise ModelError(
                "objects are compared by `is` or by id(...) here, and a model is traced with stand-ins for the nodes, "
                "of which there is another one for each way to a node. Give the nodes numbers and compare those: "
                'fields={"number": lambda node: id(node)}, node.left.number == node.right.number. A torch module may '
                "compare nodes by `is` and by ==.",
                span_at(code, at),
            )


def compares_objects(code: CodeType) -> int | None:
    """The offset of an `is` in the code whose right side is no constant, class or function; None without any."""
    before: list[dis.Instruction] = []
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not _is_from_outside(before):
            return step.offset
        if step.opname not in ("CACHE", "EXTENDED_ARG"):
            before.append(step)
    return None


def _is_from_outside(before: list[dis.Instruction]) -> bool:
    """Is what was loaded last from outside the function, or an attribute of that?"""
    at = len(before) - 1
    while at >= 0 and before[at].opname == "LOAD_ATTR":
        at -= 1
    return at >= 0 and before[at].opname in FROM_OUTSIDE


def _codes_of(function: FunctionType, seen: set[CodeType]) -> Iterator[CodeType]:
    for code in codes(function.__code__):
        if code in seen:
            continue
        seen.add(code)
        yield code
        for name in code.co_names:
            found = function.__globals__.get(name)
            if isinstance(found, FunctionType) and not is_library(found.__code__.co_filename):
                yield from _codes_of(found, seen)


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)
