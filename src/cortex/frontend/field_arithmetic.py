"""Operators of fields: those of Python's numbers give computed fields, all others tensors.

What is computed from fields of one node, and of nodes below it that are reached one by one, is a field of that node.
Numbers of a node and of each of its children at once belong to no node: they are tensors, which keep all digits that
single precision can have of their difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from cortex.frontend import pointwise
from cortex.frontend.builder import Value, builder
from cortex.frontend.computed import FUNCTIONS, KINDS, Computed, Constant, Named, constant, evaluate
from cortex.frontend.facts import ABSENT
from cortex.frontend.pointwise import ArithmeticFn, ComparisonFn
from cortex.frontend.spans import fail, is_library, user_frame, user_span
from cortex.frontend.tensor import Operand, refuse_overwritten, value_of
from cortex.frontend.written import handles_errors
from cortex.ra.ir import Each

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
UNARY = ("neg", "pos", "abs", "invert", "trunc", "floor", "ceil")
SPREAD: dict[str, ArithmeticFn] = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}
"""What can be computed of numbers of several nodes."""
COMPARED: dict[str, ComparisonFn] = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne"}
SCALARS = (str, *KINDS.values(), np.generic)
SINGLE = ("float32", "float16", "bfloat16", "bool")
"""Element types that single precision holds."""


class FieldArithmetic(Operand):
    """Operators of an attribute, which is a number, a text or an array."""

    __slots__ = ()
    _cortex_name: str
    _cortex_owner: Any
    _cortex_sample: Callable[[], Any]
    _cortex_is_array: Callable[[], bool]

    def _cortex_apply(self, fn: str, special: str, *others: Any, reflected: bool = False) -> Any:
        """`fn` of this and other operands: a computed field where all are fields and constants of Python."""
        operands = (*others, self) if reflected else (self, *others)
        for operand in operands:
            refuse_overwritten(operand)
        if all(map(is_exact, operands)):
            return compute(fn, operands)
        return self._cortex_elementwise(special, *others)

    def _cortex_is_list(self) -> bool:
        """Is it a list to the user's code, whose operators are those of lists, and not an array?"""
        return False

    def _cortex_elementwise(self, special: str, *others: Any) -> Any:
        """The operator of tensors."""
        raise NotImplementedError

    def __round__(self, *digits: Any) -> Any:
        return self._cortex_apply("round", "__round__", *digits)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self


def _method(fn: str, special: str, reflected: bool) -> Callable[..., Any]:
    def method(self: FieldArithmetic, *others: Any) -> Any:
        return self._cortex_apply(fn, special, *others, reflected=reflected)

    method.__name__ = special
    return method


for _name in (*BINARY, *UNARY):
    setattr(FieldArithmetic, f"__{_name}__", _method(_name, f"__{_name}__", False))
for _name in BINARY:
    setattr(FieldArithmetic, f"__r{_name}__", _method(_name, f"__r{_name}__", True))


def is_exact(x: Any) -> bool:
    """Is it a field that Python computes with exactly, or a constant?"""
    if not isinstance(x, FieldArithmetic):
        return not isinstance(x, Operand) and constant(x) is not None
    sample = x._cortex_sample()
    if sample is ABSENT:
        k = builder().knowledge
        known = k.accessors.shapes.get(x._cortex_name)
        if known is None and x._cortex_name in k.fields:
            known = k.fields[x._cortex_name].shape
        return not known
    if isinstance(sample, SCALARS) or x._cortex_is_list():
        return True
    element = str(getattr(sample, "dtype", "")).removeprefix("torch.")
    return bool(element) and (element not in SINGLE or (isinstance(sample, np.ndarray) and sample.ndim == 0))


def sample_of(computed: Computed, operands: tuple[Any, ...]) -> Any:
    """A real value of a computed field, by those of its operands; ABSENT where there is none of some of them."""
    samples = [x._cortex_sample() if _is_field(x) else x for x in operands]
    if any(sample is ABSENT for sample in samples):
        return ABSENT
    return evaluate(replace(computed, operands=tuple(range(len(samples)))), lambda i: samples[i])


def is_unusual(sample: Any) -> bool:
    """Is it a number that no guard can hold, so that what is asked of it is computed?"""
    return isinstance(sample, Decimal | Fraction)


def compute(fn: str, operands: tuple[Any, ...]) -> Any:
    """A field that is computed; a tensor where the operands belong to no one node.

    Code that handles what Python may raise here gets it from Python, which is given the values.
    """
    fields = [x for x in operands if _is_field(x)]
    if is_guarded():
        return FUNCTIONS[fn](*(x._cortex_tag() if _is_field(x) else x for x in operands))
    return fields[0]._cortex_compute(fn, operands)


def compute_named(fn: str, operands: tuple[Any, ...]) -> Any:
    """A field that is computed from attributes, which have names."""
    from cortex.frontend.standin import Place

    fields = [x for x in operands if _is_field(x)]
    paths = [x._cortex_owner._cortex_path() for x in fields]
    home = common(paths)
    if any(isinstance(hop, Each) for path in paths for hop in path[len(home) :]):
        return fields[0]._cortex_wrapped(spread(fn, operands))
    parts = tuple(
        Named(x._cortex_name, x._cortex_owner._cortex_path()[len(home) :]) if _is_field(x) else constant(x)
        for x in operands
    )
    accessors = builder().knowledge.accessors
    name = accessors.compute(Computed(fn, parts, user_span()))
    if all(accessors.shapes.get(x._cortex_name) == () for x in fields):
        accessors.shapes.setdefault(name, ())
    return fields[0]._cortex_beside(Place(home), name)


def _is_field(x: Any) -> bool:
    return isinstance(x, FieldArithmetic)


def common(paths: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """How all paths begin: the way to the last node that they go through."""
    home = paths[0]
    for path in paths[1:]:
        same = 0
        while same < min(len(home), len(path)) and home[same] == path[same]:
            same += 1
        home = home[:same]
    return home


def spread(fn: str, operands: tuple[Any, ...]) -> Value:
    """`fn` of numbers of several nodes, or of a node and each of its children.

    A difference is that of three parts of each number, so that digits which cancel do not cost those that remain.
    """
    if fn in COMPARED:
        return _compared(COMPARED[fn], *operands)
    if fn not in SPREAD:
        for x in filter(_is_field, operands):
            x._cortex_tag()  # which is refused
    x, y = operands
    if fn in ("mul", "truediv"):
        return pointwise.arithmetic(SPREAD[fn], value_of(x), value_of(part("divisor", y) if fn == "truediv" else y))
    sums = [
        pointwise.arithmetic(SPREAD[fn], value_of(part(which, x)), value_of(part(which, y)))
        for which in ("high", "middle", "low")
    ]
    rest = pointwise.arithmetic("add", sums[1], sums[2])
    return pointwise.arithmetic("add", sums[0], rest)


def part(which: str, x: Any) -> Any:
    """A part of a number (see computed.parts)."""
    found = constant(x)
    return compute(which, (x,)) if found is None else FUNCTIONS[which](x)


def _compared(fn: ComparisonFn, x: Any, y: Any) -> Value:
    """How two numbers compare: by their high parts, where these are equal by the next ones."""
    pairs = [(value_of(part(which, x)), value_of(part(which, y))) for which in ("high", "middle", "low")]
    same = [pointwise.comparison("eq", a, b) for a, b in pairs]
    if fn in ("eq", "ne"):
        equal = pointwise.logical("and", pointwise.logical("and", same[0], same[1]), same[2])
        return equal if fn == "eq" else pointwise.negate(equal)
    strict: ComparisonFn = "lt" if fn in ("lt", "le") else "gt"
    found = pointwise.comparison(fn, *pairs[2])
    for i in (1, 0):
        lower = pointwise.logical("and", same[i], found)
        found = pointwise.logical("or", pointwise.comparison(strict, *pairs[i]), lower)
    return found


def is_spread(computed: Computed, is_item: Callable[[Any], bool], operands: tuple[Any, ...]) -> bool:
    """Is it computed from several children, or from one in a list and the node?

    One field of the node would tell the children apart by their places, so that no kind could have any number of them.
    A sum of what is spread is such a field all the same: digits of single precision may cancel in it.
    """
    if computed.fn not in SPREAD:
        return False
    places = {x for x in computed.operands if not isinstance(x, Constant)}
    is_across = len(places) > 1 and any(map(is_item, places))
    inner = any(x._cortex_is_spread() for x in operands if _is_field(x))
    return is_across or inner if computed.fn in ("mul", "truediv") else is_across and not inner


def is_guarded() -> bool:
    """Does the user's code handle what Python raises here? Then the values are asked for, and Python computes."""
    frame = user_frame()
    while frame is not None and not is_library(frame.f_code.co_filename):
        if handles_errors(frame):
            return True
        frame = frame.f_back
    return False


def refuse_joining(name: str, others: Iterable[Any]) -> None:
    """Refuse an operator of a list on a node, unless another operand makes it one of arrays."""
    if not any(map(_is_array, others)):
        raise fail(
            f"node.{name} is a list or a tuple, and Python's operators of these do not compute with their numbers: a + "
            f'b joins two lists. Make it an array: fields={{"{name}": lambda node: np.array(node.{name}, np.float32)}}.'
        )


def _is_array(x: Any) -> bool:
    if hasattr(type(x), "_cortex_is_numbers"):
        return bool(x._cortex_is_numbers(x._cortex_sample()))
    return isinstance(x, Operand | np.ndarray | np.generic)
