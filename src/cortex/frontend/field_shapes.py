"""Shapes of fields that the code of a model asks for: `len(node.x)`, `node.x.shape`.

A kind of node has one shape of a field, that of the node it was traced for, and the linearizer refuses a field of any
other shape where the kind reads it. A model that asks for the shape and reads no element would get that of another
node, without a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cortex.errors import ModelError
from cortex.frontend.builder import Builder, Value
from cortex.frontend.spans import fail, user_span
from cortex.ra.ir import Field


def note_shape(value: Value) -> None:
    """The model's code asks for the shape of a value."""
    value.builder.shapes_asked.setdefault(value.name, user_span())


def check_shapes(b: Builder, results: tuple[str, ...]) -> None:
    """Refuse a kind that has asked for the shape of a field and does not read it."""
    read = {let.op for let in b.reachable(results)}
    for name, span in b.shapes_asked.items():
        for let in b.reachable((name,)):
            if isinstance(let.op, Field) and let.op not in read and let.op.name not in b.knowledge.accessors.shapes:
                field = let.op.name
                raise ModelError(
                    f"the shape of node.{field} is asked for, but no result depends on its elements, so that nobody "
                    f"would see a node whose {field} has another shape. Make what is asked for a field, "
                    f'fields={{"length": lambda node: len(node.{field})}}, or declare the shape: '
                    f'fields={{"{field}": cortex.field({let.type.shape})}}.',
                    span,
                )


def is_one_integer(sample: Any) -> bool:
    """Is this a torch tensor that Python takes for an integer?"""
    return hasattr(sample, "detach") and sample.numel() == 1 and not sample.is_floating_point()


def shape_of(sample: Any, name: str) -> tuple[int, ...]:
    """The shape of a real value used as a field."""
    try:
        array = np.asarray(sample.detach().cpu() if hasattr(sample, "detach") else sample)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise fail(f"node.{name} is computed with, but its value is a {type(sample).__name__}, not numbers.")
    return tuple(array.shape)
