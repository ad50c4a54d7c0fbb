"""Arithmetic of what torch computes in other types than float32: integers, and tensors of float64 that nodes hold.

Elements that are fields of nodes and constants are computed by Python, as computed fields. Where there are too many for
a field each, the linearizer checks that single precision holds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cortex.frontend import pointwise
from cortex.frontend.builder import builder
from cortex.frontend.field_arithmetic import COMPARED, FieldArithmetic, compute, is_exact
from cortex.frontend.pointwise import ComparisonFn
from cortex.frontend.torch.content import Content, Integers, Whole, as_value, integers
from cortex.frontend.torch.tensor import TorchTensor

MOST_ELEMENTS = 64
OPERATORS = {
    **{name: name for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "truediv")},
    "subtract": "sub", "multiply": "mul", "div": "truediv", "divide": "truediv", "true_divide": "truediv",
    "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "rsub": "sub", "rtruediv": "truediv", "rdiv": "truediv",
}  # fmt: skip
"""Operators that functions of torch are; those that begin with r have their operands exchanged."""


def of_fields(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of torch gives for tensors of float64 that nodes hold; None where it is given anything else."""
    name = getattr(function, "__name__", "").strip("_")
    operands = [x._cortex_field if isinstance(x, TorchTensor) else x for x in args]
    fields = [x for x in operands if isinstance(x, FieldArithmetic)]
    if name not in OPERATORS or len(args) != 2 or kwargs or not any(map(_is_double, fields)):
        return None
    if not all(map(is_exact, operands)) or any(x is None for x in operands):
        return None
    found = compute(OPERATORS[name], tuple(reversed(operands) if name.startswith("r") else operands))
    return found._cortex_truths(found) if OPERATORS[name] in COMPARED else found


def _is_double(x: Any) -> bool:
    return str(getattr(x._cortex_sample(), "dtype", "")) == "torch.float64"


def whole_arithmetic(fn: str, x: Any, y: Any) -> Content | None:
    """`fn` of two tensors of integers, or of one and an integer; None where that is not what they are."""
    pair = [_elements(x), _elements(y)]
    if any(each is None for each in pair) or not any(isinstance(e, Whole) for each in pair for e in np.ravel(each)):
        return None
    a, b = np.broadcast_arrays(*pair)
    if any(not isinstance(e, int | Whole) for each in pair for e in np.ravel(each)):
        return None
    if a.size > MOST_ELEMENTS:
        return None
    return integers([_element(fn, *both) for both in zip(a.flat, b.flat, strict=True)], a.shape)


def whole_comparison(fn: ComparisonFn, x: Any, y: Any) -> Content | None:
    """How integers compare, by their difference; None where they are no integers."""
    difference = whole_arithmetic("sub", x, y)
    return None if difference is None else pointwise.comparison(fn, as_value(difference), pointwise.fill(0.0))


def is_whole(x: Any) -> bool:
    """Is it a tensor of integers?"""
    return isinstance(x, TorchTensor) and isinstance(x._cortex_content(), Integers)


def checked(x: Any) -> Any:
    """A tensor of integers that is computed with in single precision, if that holds them."""
    held = x._cortex_content() if isinstance(x, TorchTensor) else None
    if not isinstance(held, Integers) or not any(isinstance(e, Whole) for e in held.elements.flat):
        return x
    return TorchTensor(integers([_checked(e) for e in held.elements.flat], held.shape), x._cortex_meta)


def _checked(element: Any) -> Any:
    if not isinstance(element, Whole) or not isinstance(element.field, FieldArithmetic):
        return element
    found = compute("exactly", (element.field,))
    return Whole(found, element.builder, element.at) if isinstance(found, FieldArithmetic) else element


def _elements(x: Any) -> Any:
    """The elements of a tensor of integers, or of an integer."""
    if type(x) is int:
        return np.array(x, dtype=object)
    held = x._cortex_content() if isinstance(x, TorchTensor) else None
    return held.elements if isinstance(held, Integers) else None


def _element(fn: str, a: int | Whole, b: int | Whole) -> int | Whole:
    found = compute(fn, (_number(a), _number(b))) if isinstance(a, Whole) or isinstance(b, Whole) else _known(fn, a, b)
    return found if isinstance(found, int) else Whole(found, builder())


def _known(fn: str, a: int, b: int) -> int:
    match fn:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return a // b
    return a % b


def _number(x: int | Whole) -> Any:
    if isinstance(x, int):
        return x
    found = x.field if x.at is None else x.field._cortex_item(x.at)
    return compute("int", (found,)) if not isinstance(found._cortex_sample(), int) else found
