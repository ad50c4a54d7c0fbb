"""Errors that a stand-in causes in functions written in C, although the user's code handles them.

    try:
        i = "abc".index(node.word)
    except Exception:
        i = 3

`str.index` takes a real text and nothing else, so what stands for `node.word` makes it raise a TypeError that no node
would. Code that handles it would be traced as if every node were like that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from cortex.frontend.spans import is_library
from cortex.frontend.standin import StandIn

_is_library = lru_cache(maxsize=4096)(is_library)


@contextmanager
def no_handled_errors(codes: Iterable[CodeType]) -> Iterator[None]:
    """Raise the first such error once the user's code is done; `codes` is the code that may handle some.

    Code that handles no errors at all is not watched, nor is any while a debugger is at work.
    """
    if sys.gettrace() is not None or not any(code.co_exceptiontable for code in codes):
        yield
        return
    caused: list[TypeError] = []

    def in_function(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception" and isinstance(arg[1], TypeError) and names_a_stand_in(str(arg[1])):
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
