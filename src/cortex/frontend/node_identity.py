"""`is` between nodes and `id(node)`: Python answers without asking the stand-ins, so they are found in the code."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from cortex.frontend.beyond import beyond_at
from cortex.frontend.spans import is_library, span_at

FROM_OUTSIDE = ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE")
"""What loads something that is no node: a constant, a class, a function."""


def refuse_identity(function: Callable[..., Any]) -> None:
    """Refuse a model, or a function of the user's that it names, that asks whether two objects are one."""
    for inner in (code for found in functions_of(function) for code in codes(found.__code__)):
        at = compares_objects(inner)
        asks = (i.offset for i in dis.get_instructions(inner) if (i.opname, i.argval) == ("LOAD_GLOBAL", "id"))
        at = next(asks, None) if at is None else at
        if at is not None:
            raise beyond_at(
                "objects are compared by `is` or by id(...) here, and a model is traced with stand-ins for nodes and "
                "what they hold. Compare values by ==. Of nodes, let a field say it: "
                'fields={"is_twice": lambda node: node.left is node.right}, and test node.is_twice. A torch module may '
                "compare nodes by `is` and by ==.",
                span_at(inner, at),
            )


def compares_objects(code: CodeType) -> int | None:
    """The offset of an `is` in the code that may compare what a node leads to; None without any.

    `x is None`, `type(x) is Leaf` and comparisons of what is from outside the function do not.
    """
    before: list[dis.Instruction] = []
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not _is_harmless(before):
            return step.offset
        if step.opname not in ("CACHE", "EXTENDED_ARG"):
            before.append(step)
    return None


def _is_harmless(before: list[dis.Instruction]) -> bool:
    right = _operand(before, len(before) - 1)
    if right is None:
        return False
    if before[right].opname == "LOAD_CONST" and any(before[right].argval is x for x in (None, True, False, ...)):
        return True
    return before[right - 1].opname == "CALL" or _operand(before, right - 1) is not None


def _operand(before: list[dis.Instruction], at: int) -> int | None:
    """Where something from outside the function, or an attribute of that, is loaded which is on top at `at`."""
    while at >= 0 and before[at].opname == "LOAD_ATTR":
        at -= 1
    return at if at >= 0 and before[at].opname in FROM_OUTSIDE else None


def functions_of(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """A function, and the user's functions that it names, and so on."""
    todo: list[Any] = [function]
    seen: list[Any] = []
    while todo:
        at = todo.pop()
        if not isinstance(at, FunctionType) or is_library(at.__code__.co_filename) or at in seen:
            continue
        seen.append(at)
        yield at
        todo += (cell.cell_contents for cell in at.__closure__ or () if _is_bound(cell))
        todo += (at.__globals__.get(name) for code in codes(at.__code__) for name in code.co_names)


def _is_bound(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)
