"""Where in the user's source the running operation was written."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, FrameType

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.written import place_of, positions, running
from cortex.ir.source import Span

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
PACKAGE = os.path.dirname(os.path.dirname(HERE)) + os.sep
MODELS = os.path.join(PACKAGE, "bench", "training_module.py")
"""A file of Cortex with a module that is compiled as the user's are."""
NAMES = PACKAGE + "__init__.py"
"""Where public names of Cortex are looked up: what it raises is about the line that asked for one."""

BESIDE = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))
"""Where packages are installed, in whatever way that is on the path."""
LIBRARIES = tuple(
    {os.path.abspath(p) + os.sep for p in (BESIDE, *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))) if p}
)
DISPATCHERS = ("<frozen abc>", os.path.abspath(functools.__file__))
"""Library code that asks for an object's class on behalf of its caller: `isinstance` with an abstract class,
`functools.singledispatch`."""

DRIVER = os.path.join(HERE, "trace_kind.py")
"""Who calls the user's code; what calls that is not the user's."""


def user_frame() -> FrameType | None:
    """The innermost frame that belongs neither to the front end nor to torch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_passed_over(frame.f_code.co_filename):
        frame = None if frame.f_code.co_filename == DRIVER else frame.f_back
    return frame


@lru_cache(maxsize=4096)
def _is_passed_over(file: str) -> bool:
    return _belongs_to_libraries(file, "torch" in sys.modules)


@lru_cache(maxsize=4096)
def _belongs_to_libraries(file: str, has_torch: bool) -> bool:
    return file.startswith((HERE, _torch_folder() if has_torch else HERE)) or file in DISPATCHERS


def _torch_folder() -> str:
    """Where torch lies, if it is loaded: its modules call operators on behalf of the user's code."""
    file = getattr(sys.modules.get("torch"), "__file__", None)
    return HERE if file is None else os.path.dirname(file) + os.sep


def is_library(file: str) -> bool:
    """Is this a file of Cortex, of Python or of an installed package?"""
    return file.startswith((PACKAGE, *LIBRARIES, "<frozen ")) and file != MODELS


def user_stack() -> list[tuple[CodeType, int]]:
    """Where the user's code is running: the innermost place first, then those that it was called from."""
    frame, found = user_frame(), []
    while frame is not None and frame.f_code.co_filename != DRIVER:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def is_printing() -> bool:
    """Is the user's code printing or logging, so that what it makes a text of decides nothing?"""
    frame = user_frame()
    return frame is not None and _is_printing(frame.f_code.co_filename, frame.f_lineno)


PRINTING = ("print", "debug", "info", "warning", "error", "log", "write")


@lru_cache(maxsize=256)
def _is_printing(file: str, line: int) -> bool:
    """Is the statement at a line a call of `print`, or of a method of a log?"""
    try:
        found = ast.walk(ast.parse("".join(linecache.getlines(file))))
    except SyntaxError:
        return False
    around = [s for s in found if isinstance(s, ast.Expr) and s.lineno <= line <= (s.end_lineno or s.lineno)]
    calls = [s.value.func for s in around if isinstance(s.value, ast.Call)]
    return any(getattr(f, "attr", getattr(f, "id", None)) in PRINTING for f in calls)


def running_twice() -> str | None:
    """The name of a function of the user's that runs inside itself."""
    codes = [code for code, _ in user_stack() if not code.co_name.startswith("<")]
    return next((code.co_name for i, code in enumerate(codes) if code in codes[:i]), None)


def user_span() -> Span | None:
    """The user's expression that is being evaluated."""
    frame = user_frame()
    return None if frame is None else span_at(frame.f_code, frame.f_lasti)


def running_call() -> ast.Call | None:
    """The user's call that is being evaluated, if it is one."""
    frame = user_frame()
    return None if frame is None else call_in(frame)


def call_in(frame: FrameType) -> ast.Call | None:
    """The call that is being evaluated in a frame, if it is one."""
    x = running(frame)
    return x if isinstance(x, ast.Call) else None


_REFUSED: ContextVar[list[ModelError] | None] = ContextVar("cortex_refused", default=None)


def fail(message: str, kind: type[ModelError] = ModelError) -> ModelError:
    """A ModelError at the user's expression that is being evaluated: `raise fail("...")`."""
    error = kind(message, user_span())
    refused = _REFUSED.get()
    if refused is not None:
        refused.append(error)
    return error


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what was refused at last, though the user's code has handled it: `except Exception` is not meant for it."""
    refused: list[ModelError] = []
    token = _REFUSED.set(refused)
    try:
        yield
    finally:
        _REFUSED.reset(token)
    if refused:
        raise refused[0]


def span_of_error(error: BaseException) -> Span | None:
    """The user's expression that raised an error, or called a library that did; one of an installed model as well."""
    trace, found = error.__traceback__, []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith((HERE, NAMES, _torch_folder())):
            found.append((trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    own = [place for place in found if not is_library(place[0].co_filename)]
    return span_at(*(own or found)[-1]) if found else None


def span_of_function(code: CodeType) -> Span:
    """The line where a function is defined."""
    line = code.co_firstlineno
    while line < code.co_firstlineno + 20 and not _text(code, line).lstrip().startswith(("def ", "async ")):
        line += 1  # co_firstlineno is the first decorator's line
    text = _text(code, line)
    return Span(_shown(code), line, len(text) - len(text.lstrip()), len(text.rstrip()), text)


@lru_cache(maxsize=4096)
def span_at(code: CodeType, lasti: int) -> Span | None:
    """The source of the instruction at byte offset `lasti`."""
    line, end_line, column, end = positions(code)[lasti // 2]
    if line is None:
        return None
    text = _text(code, line)
    if column is None or end is None:
        return Span(_shown(code), line, len(text) - len(text.lstrip()), len(text.rstrip()), text)
    return span_between(code, line, column, end_line, end)


def span_of(code: CodeType, x: ast.AST) -> Span:
    """The source of a piece of syntax in a code object's file."""
    line, column, end_line, end = place_of(x)
    return span_between(code, line, column, end_line, end)


def span_between(code: CodeType, line: int, column: int, end_line: int | None, end: int | None) -> Span:
    """The source between two positions of a code object's file, as `ast` counts them."""
    text = _text(code, line)
    data = text.encode()  # columns count bytes of UTF-8
    start = len(data[:column].decode(errors="ignore"))
    stop = len(data[:end].decode(errors="ignore")) if end_line == line else len(text.rstrip())
    return Span(_shown(code), line, start, stop, text)


def _text(code: CodeType, line: int) -> str:
    return linecache.getline(code.co_filename, line).rstrip("\n")


def _shown(code: CodeType) -> str:
    """The file's name relative to the working directory where it lies below it."""
    name = code.co_filename
    if not os.path.isabs(name):
        return name
    relative = os.path.relpath(name)
    return name if relative.startswith(os.pardir) else relative
