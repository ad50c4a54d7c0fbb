"""Recursion that is not made by calling what tracing sees: it would run over the whole structure."""

from __future__ import annotations

import sys
from collections.abc import Set
from types import CodeType, FrameType

from cortex.errors import ModelError
from cortex.frontend.builder import builder
from cortex.frontend.spans import is_library, span_at


def refuse_unseen_recursion(seen: Set[CodeType]) -> None:
    """Refuse a function of the user's that is running inside itself, unless its calls are `seen`."""
    frame: FrameType | None = sys._getframe(1)
    running: set[CodeType] = set()
    end = builder().knowledge.model
    while frame is not None and frame.f_locals.get("self") is not end:
        code = frame.f_code
        if code in running:
            raise ModelError(
                f"{code.co_name} calls itself, and such calls are seen only of methods of modules and of functions at "
                f"the top of a file. Make {code.co_name} one of these.",
                span_at(code, frame.f_lasti),
            )
        if code not in seen and not code.co_name.startswith("<") and not is_library(code.co_filename):
            running.add(code)
        frame = frame.f_back
