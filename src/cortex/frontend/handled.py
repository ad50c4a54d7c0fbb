"""Errors that a stand-in causes in functions written in C, although the user's code handles them.

    try:
        i = "abc".index(node.word)
    except Exception:
        i = 3

`str.index` takes a real text and nothing else, so what stands for `node.word` makes it raise a TypeError that no node
would. Code that handles it would be traced as if every node were like that. Such an error is known by its message, if
that names the class of the stand-in, or by the call that raised it: one of a function that is not the user's, with a
stand-in among its arguments. What Cortex itself raises is what Python would raise.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any

from cortex.frontend.spans import PACKAGE, is_library
from cortex.frontend.standin import StandIn
from cortex.frontend.written import running_at

CAUSED = "_cortex_caused_by_stand_in"
SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)
_is_library = lru_cache(maxsize=4096)(is_library)


@contextmanager
def no_handled_errors(codes: Iterable[CodeType]) -> Iterator[None]:
    """Raise the first such error once the user's code is done; `codes` is the code that may handle some.

    Code that handles no errors at all is not watched, nor is any while a debugger is at work.
    """
    if sys.gettrace() is not None or not any(code.co_exceptiontable for code in codes):
        yield
        return
    caused: list[Exception] = []

    def in_function(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception" and isinstance(arg[1], TypeError | AttributeError) and _is_caused(arg[1], arg[2]):
            caused.append(arg[1])
        return in_function

    def of_call(frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_exceptiontable or _is_library(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        return in_function

    sys.settrace(of_call)
    try:
        yield
    finally:
        sys.settrace(None)
    if caused:
        raise caused[0]


def _is_caused(error: TypeError | AttributeError, trace: TracebackType | None) -> bool:
    """Is a stand-in the cause of an error, and not the value that it stands for?"""
    if isinstance(error, TypeError) and names_a_stand_in(str(error)):
        return True
    place, outside = None, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        place, outside = (place, file) if _is_library(file) else (trace, "")
        trace = trace.tb_next
    if place is None or outside.startswith(PACKAGE) or (isinstance(error, AttributeError) and not outside):
        return False
    call = running_at(place.tb_frame.f_code, place.tb_lasti)
    given = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
    if any(_stands_in(x, place.tb_frame) for x in given):
        setattr(error, CAUSED, True)
        return True
    return False


def _stands_in(x: ast.expr, frame: FrameType) -> bool:
    """Does an argument stand for something, or does a variable in it, if it is more than an attribute of one?"""
    space = {**frame.f_globals, **frame.f_locals}
    if all(isinstance(part, SIMPLE) for part in ast.walk(x)):
        with suppress(Exception):
            return stands_in(eval(compile(ast.Expression(x), "<argument>", "eval"), space))
    names = (part.id for part in ast.walk(x) if isinstance(part, ast.Name))
    return any(stands_in(space.get(name)) for name in names)


def stands_in(x: Any) -> bool:
    """Is this a stand-in? Its class says that it is what it stands for."""
    return issubclass(type(x), StandIn) or (type(x) in (list, tuple) and any(map(stands_in, x)))


def is_of_stand_in(error: Exception) -> bool:
    """Has a stand-in caused an error, as far as is known?"""
    return isinstance(error, TypeError) and (names_a_stand_in(str(error)) or hasattr(error, CAUSED))


def names_a_stand_in(message: str) -> bool:
    """Is the message about a stand-in?"""
    return not _stand_ins().isdisjoint(re.findall(r"\w+", message))


def without_stand_ins(message: str) -> str:
    """The message as users can read it."""
    return re.sub(
        rf"\b({'|'.join(_stand_ins())})\b", "a field that has its value only when the model is called", message
    )


def _stand_ins() -> set[str]:
    """The names of all classes of stand-ins."""
    found, todo = set(), [StandIn]
    while todo:
        cls = todo.pop()
        found.add(cls.__name__)
        todo += type.__subclasses__(cls)
    return found
