"""Recursion that is not made by calling what tracing sees: it would run over the whole structure."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Set
from types import CodeType, FrameType

from cortex.errors import ModelError
from cortex.frontend.builder import builder
from cortex.frontend.spans import fail, is_library, span_at
from cortex.frontend.torch.routines import Routine


def refuse_unseen_recursion(seen: Set[CodeType]) -> None:
    """Refuse a function of the user's that is running inside itself, unless its calls are `seen`."""
    frame: FrameType | None = sys._getframe(1)
    running: set[CodeType] = set()
    end = builder().knowledge.model
    while frame is not None and frame.f_locals.get("self") is not end:
        code = frame.f_code
        if code in running:
            raise ModelError(
                f"{code.co_name} calls itself, and such calls are seen only of methods of modules, of functions at the "
                "top of a file that are called by these, and of functions inside others that are no generators and "
                f"have no `nonlocal`. Make {code.co_name} one of them.",
                span_at(code, frame.f_lasti),
            )
        if code not in seen and not code.co_name.startswith("<") and not is_library(code.co_filename):
            running.add(code)
        frame = frame.f_back


def refuse_generator(routine: Routine) -> None:
    """Refuse a generator that is called while it runs: it would go on over the whole structure."""
    code = routine.function.__code__
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and code.co_flags & inspect.CO_GENERATOR:
        if frame.f_code is code:
            raise fail(
                f"{routine.label} is a generator that calls itself; what it yields for a child is no result that a "
                f"node can keep. Where it only lists nodes, make {routine.label} a method of the node's class (for n "
                f"in tree.{routine.label}()): methods of nodes are asked of the real ones. What it computes on the "
                "way, store on the node (node.h = h)."
            )
        frame = frame.f_back
