"""Functions of NumPy, PyTorch and `math` that are given a symbolic tensor: which function of Cortex to call instead."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.spans import running_call, span_at, user_frame, user_span

Dispatch = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
TORCH: ContextVar[Dispatch | None] = ContextVar("cortex_torch", default=None)
"""What functions of torch that are given a symbolic operand do while torch code is traced, and None while it is not."""

SAME_NAME = (
    "abs", "dot", "einsum", "elu", "embedding", "exp", "layer_norm", "leaky_relu", "log", "matmul", "max", "maximum",
    "mean", "min", "minimum", "outer", "relu", "reshape", "sigmoid", "softmax", "split", "sqrt", "stack", "sum", "tanh",
    "transpose", "where",
)  # fmt: skip
EQUIVALENT = dict.fromkeys(SAME_NAME, "") | {
    "absolute": "abs", "amax": "max", "amin": "min", "array_split": "split", "cat": "concat", "concatenate": "concat",
    "fabs": "abs", "hstack": "concat", "vstack": "stack",
}  # fmt: skip
"""The function of Cortex that does the same; "" for the same name."""

OPERATORS = {
    "add": "add", "subtract": "sub", "sub": "sub", "multiply": "mul", "mul": "mul", "divide": "truediv",
    "div": "truediv", "true_divide": "truediv", "matmul": "matmul", "floor_divide": "floordiv", "remainder": "mod",
}  # fmt: skip
"""The functions by which arrays of other libraries compute `array + tensor`."""

COMPARISONS = {
    "less": ("lt", "gt"), "less_equal": ("le", "ge"), "greater": ("gt", "lt"), "greater_equal": ("ge", "le"),
    "equal": ("eq", "eq"), "not_equal": ("ne", "ne"),
}  # fmt: skip
"""The same for `array < tensor`: the comparison, and the one with sides exchanged."""


def as_operator(function: str, inputs: Sequence[Any], is_ours: Callable[[Any], bool]) -> Any:
    """`array + tensor` where the array's library is asked first: the tensor's own operator; else NotImplemented."""
    name = OPERATORS.get(function, "")
    forward, backward = COMPARISONS.get(function, (name, f"r{name}"))
    if not forward or len(inputs) != 2:
        return NotImplemented
    left, right = inputs
    if is_ours(left):
        return getattr(operator, forward)(left, right)
    reflected = getattr(type(right), f"__{backward}__", None)
    return NotImplemented if reflected is None else reflected(right, left)


def foreign(library: str, function: str) -> ModelError:
    """The error for a function of another library."""
    frame = user_frame()
    while frame is not None and _is_inside(frame, library):
        frame = frame.f_back
    own = EQUIVALENT.get(function)
    remedy = (
        "Use the functions of cortex (cortex.tanh, cortex.concat, ...) and arithmetic"
        if own is None
        else f"Write cortex.{own or function}"
    )
    return ModelError(
        f"{library}.{function} of a tensor of the model: it would compute now, and a model is compiled before any "
        f"value is known. {remedy}.",
        None if frame is None else span_at(frame.f_code, frame.f_lasti),
    )


def math_function() -> str | None:
    """The function of `math` that the user's code is calling, which asked for a float."""
    call = running_call()
    match call.func if call is not None else None:
        case ast.Attribute(value=ast.Name(id="math"), attr=name):
            return name
        case ast.Name(id=name) if name not in ("float", "int", "complex") and hasattr(sys.modules.get("math"), name):
            return name
    return None


def _is_inside(frame: FrameType, library: str) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] == {"np": "numpy"}.get(library, library)


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
