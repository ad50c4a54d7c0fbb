"""`array[node.NAME]` with a NumPy array: NumPy would index it once, while the model is traced."""

from __future__ import annotations

import ast

import numpy as np

from cortex.frontend.spans import user_frame, user_span


def indexes_an_array() -> bool:
    """Is the running expression `array[node.NAME]` with a NumPy array? Found by looking up the array's name."""
    frame, span = user_frame(), user_span()
    if frame is None or span is None:
        return False
    try:
        expression = ast.parse(span.text[span.column : span.end].strip(), mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(expression, ast.Subscript) or not isinstance(expression.value, ast.Name):
        return False
    name = expression.value.id
    return isinstance(frame.f_locals.get(name, frame.f_globals.get(name)), np.ndarray)
