"""Ways to ask whether a node has an attribute at all.

To a compiled model an attribute that is absent is None: a leaf need not have `left`. What tells the two apart in
Python would give another answer when compiled, so it is refused; `getattr(node, "left", None)` means what it says.
"""

from __future__ import annotations

import ast

from cortex.frontend.spans import fail, running_call, user_frame
from cortex.frontend.written import handles_errors


def refuse_absence_test(name: str) -> None:
    """Refuse `hasattr(node, NAME)`, `getattr(node, NAME, 0)` and `try: node.NAME` with `except AttributeError`."""
    call = running_call()
    remedy = f"An absent attribute counts as None here; write `node.{name} is None`."
    if call is not None and _is(call, "hasattr"):
        raise fail(f"hasattr() of a node: whether '{name}' is absent or None makes no difference. {remedy}")
    if call is not None and _is(call, "getattr") and len(call.args) == 3 and not _is_none(call.args[2]):
        raise fail(f"getattr() of a node with a default that is not None. {remedy}")
    frame = user_frame()
    if frame is not None and "AttributeError" in frame.f_code.co_names and handles_errors(frame):
        raise fail(f"node.{name} inside a `try` that handles AttributeError, which is never raised. {remedy}")


def has_default() -> bool:
    """Is the attribute being read by `getattr(node, NAME, None)`?"""
    call = running_call()
    return call is not None and _is(call, "getattr") and len(call.args) == 3


def _is(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == name


def _is_none(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None
