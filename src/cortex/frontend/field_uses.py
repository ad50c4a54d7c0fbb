"""Uses of fields that would be evaluated once, while the model is traced, and what to say of them."""

from __future__ import annotations

import ast

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.beyond import beyond
from cortex.frontend.spans import fail, user_frame, user_span


def no_array(name: str) -> ModelError:
    """What to say where NumPy makes an array of node.NAME."""
    if _indexes_an_array():
        return fail(
            f"a NumPy array is indexed with node.{name}, which NumPy would do once, now. Write "
            f"cortex.embedding(table, node.{name}), or pass the array as a weight."
        )
    return fail(f"node.{name} cannot become a NumPy array: use the functions of cortex (cortex.tanh, ...).")


def no_element_type(name: str) -> ModelError:
    """What to say where code asks for the element type of node.NAME."""
    return fail(
        f"the element type of node.{name} is asked for; what a model computes with is float32 whatever nodes hold. "
        f'Make it a field: fields={{"type": lambda node: str(node.{name}.dtype)}}.'
    )


def called(computed: str, names: list[str]) -> ModelError:
    """What to say where code calls a `computed` number, or else the method that attributes of these names lead to."""
    if computed:
        return fail(f"{computed} is called here, and a number is no function. Use the number itself.")
    way, name = ".".join(names), "_".join(names)
    return beyond(
        f"node.{way}(...) calls a method of the node. Methods of nodes cannot be traced; pass "
        f'fields={{"{name}": lambda node: node.{way}()}} and read node.{name}.'
    )


def _indexes_an_array() -> bool:
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
