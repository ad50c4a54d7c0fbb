"""Computed fields: what code computes from fields and constants of Python alone, `(node.t - node.start) / 60`.

Python computes with the real values, in double precision or with integers of any size, and raises where it has to. So
does the linearizer: a computed field is an expression that is evaluated for each node, by Python's own operators, and
becomes a number of the model once, at the end. The expressions are plain data: an operator and its operands, each a
constant or what leads to a value from the node (names and hops for functions, steps for modules).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np

from cortex.errors import StructureError, excerpt
from cortex.ir.source import Span
from cortex.ra.ir import Hop

KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (bool, int, float, complex, str, Decimal, Fraction)}
"""Classes of constants, whose values never change."""


def parts(x: Any) -> tuple[Any, Any, Any]:
    """Three numbers of single precision whose sum is `x`; StructureError where there are none. So of arrays."""
    if getattr(x, "ndim", 0):
        array = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
        each = np.array([parts(e) for e in array.astype(object).flat], np.float32).reshape(*array.shape, 3)
        return each[..., 0], each[..., 1], each[..., 2]
    rest, found = x.item() if isinstance(x, np.generic) else x, []
    for _ in range(3):
        part = float(np.float32(rest))
        found.append(part)
        if not math.isfinite(part):
            rest = 0
        elif isinstance(rest, int):
            rest -= int(part)
        else:
            rest = float(rest) - part
    if rest:
        raise StructureError(
            f"{x!r:.60} is compared with or subtracted from a number of another node, for each child at once, and has "
            "more digits than that can be done with (72 bits). Loop over the children with a `for` statement"
        )
    return found[0], found[1], found[2]


def divisor(x: Any) -> Any:
    """`x`, which Python divides by."""
    if x == 0:
        raise ZeroDivisionError("division by zero")
    return x


def exactly(x: Any) -> Any:
    """`x`, integers that are computed with in single precision; StructureError where that has not all their digits."""
    array = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
    lost = array[array.astype(np.float32).astype(object) != array.astype(object)]
    if lost.size:
        raise StructureError(
            f"the integer {lost.flat[0]} is computed with as float32, which cannot hold it. Compute with Python's "
            "numbers on the node (node.a - node.b), or make the result a field of the node"
        )
    return x


def called(method: Callable[[Any], Any], x: Any) -> Any:
    """What a method gives; a list of what it goes through, where that is all it gives."""
    found = method(x)
    return list(found) if isinstance(found, Iterator) else found


OF_MATH = (
    "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "tanh", "hypot", "fabs", "copysign", "degrees", "radians", "erf", "isqrt",
)  # fmt: skip
"""Functions of `math` that numbers of nodes are computed with."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in OF_MATH},
    **{
        name: getattr(operator, name)
        for name in (
            "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "xor", "neg", "pos", "abs",
            "invert", "lt", "le", "gt", "ge", "eq", "ne",
        )
    },
    "and": operator.and_, "or": operator.or_, "round": round, "int": int, "float": float, "trunc": math.trunc,
    "bool": bool, "getitem": operator.getitem, "called": called, "is_truth": lambda x: x is True or x is False,
    "is": operator.is_, "equals": lambda x, y: bool(x == y),
    "numpy_class": lambda x: type(x).__name__ if isinstance(x, np.number | np.bool_ | np.str_) else "",
    "floor": math.floor, "ceil": math.ceil, "divisor": divisor, "exactly": exactly,
    "bit_length": lambda x: x.bit_length(),
    "high": lambda x: parts(x)[0], "middle": lambda x: parts(x)[1], "low": lambda x: parts(x)[2],
}  # fmt: skip
"""What an expression may apply."""

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "lshift": "<<",
    "rshift": ">>", "xor": "^", "and": "&", "or": "|", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "neg": "-", "pos": "+", "invert": "~", "is": "is", "equals": "==",
}  # fmt: skip
NAMES = {
    "+": "plus", "-": "minus", "*": "times", "/": "over", "//": "floor_over", "%": "mod", "**": "to_the", "<": "less",
    "<=": "at_most", ">": "more", ">=": "at_least", "==": "equal", "!=": "not_equal", "&": "and", "|": "or", "^": "xor",
    "<<": "shifted", ">>": "shifted_down", "~": "not",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LONGEST_NAME = 48


@dataclass(frozen=True)
class Constant:
    """A constant by its class and text, so that 1, 1.0 and True are told apart; a tuple or list has `items`."""

    kind: str
    text: str
    items: tuple[Constant, ...] = ()

    @cached_property
    def value(self) -> Any:
        """The constant itself."""
        if self.kind in ("tuple", "list"):
            return {"tuple": tuple, "list": list}[self.kind](item.value for item in self.items)
        if self.kind == "NoneType":
            return None
        if self.kind.startswith("np."):
            kind = np.dtype(self.kind.removeprefix("np.")).type
            return kind(self.text == "True") if kind is np.bool_ else kind(self.text)
        return self.text == "True" if self.kind == "bool" else KINDS[self.kind](self.text)


@dataclass(frozen=True)
class Named:
    """`node.name` of the node at `path`."""

    name: str
    path: tuple[Hop, ...] = ()


@dataclass(frozen=True)
class Computed:
    """`fn` of operands: constants, `Named` values, and in a module the steps that lead to them (torch/steps.py)."""

    fn: str
    operands: tuple[Any, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    """Where the user's code says so."""


def constant(value: Any) -> Constant | None:
    """A constant of the user's code; None where it is none whose value stays what it is."""
    if value is None or type(value) in KINDS.values():
        return Constant(type(value).__name__, str(value) if type(value) is not float else repr(value))
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return Constant(f"np.{value.dtype.name}", str(value.item()) if value.dtype.itemsize <= 8 else str(value))
    if isinstance(value, str | int | float) and keeps_equality(value):
        return constant(plain_of(value))
    if type(value) in (tuple, list):
        items = [constant(item) for item in value]
        known = tuple(item for item in items if item is not None)
        return Constant(type(value).__name__, "", known) if len(known) == len(items) else None
    return None


def keeps_equality(value: str | int | float) -> bool:
    """Is a value of a subclass of Python's texts and numbers compared as they are?"""
    base = next(kind for kind in (str, bool, int, float) if isinstance(value, kind))
    own: Any = type(value)
    return all(getattr(own, f"__{name}__") is getattr(base, f"__{name}__") for name in COMPARISONS)


def is_comparable(value: object) -> bool:
    """Does Python compare it with texts and numbers as its class says, and is `!=` the contrary of `==`?"""
    if value is None or isinstance(value, np.generic):
        return not isinstance(value, complex)
    if isinstance(value, complex) or not isinstance(value, str | Number):
        return False
    base = next((kind for kind in (str, int, float) if isinstance(value, kind)), None)
    own: Any = type(value)
    return base is None or own.__eq__ is base.__eq__ or own.__ne__ is not base.__ne__


def plain_of(value: str | int | float) -> str | int | float:
    """The value of a subclass as Python's own class has it."""
    if isinstance(value, str):
        return str.__str__(value)  # a str that is also an Enum prints as its member
    return int(value) if isinstance(value, int) else float(value)


def is_computation(fn: Any, operands: Any, is_operand: Callable[[Any], bool]) -> bool:
    """Can a computed field be of these? `is_operand` knows what leads to a value."""
    known = type(operands) is tuple and 1 <= len(operands) <= 2
    return fn in FUNCTIONS and known and all(isinstance(x, Constant) or is_operand(x) for x in operands)


def evaluate(computed: Computed, read: Callable[[Any], Any]) -> Any:
    """The value, where `read` gives those of operands that are no constants."""
    given = [x.value if isinstance(x, Constant) else read(x) for x in computed.operands]
    try:
        return FUNCTIONS[computed.fn](*given)
    except Exception as error:
        if computed.fn == "getitem" and isinstance(error, LookupError | TypeError):
            raise  # it leads nowhere
        raise failure(computed, error) from None


def failure(computed: Computed, error: BaseException) -> StructureError:
    """What to say where Python raises an error when it computes the field."""
    place = "" if computed.span is None else f"\n\n{excerpt(computed.span)}"
    what = str(error) if isinstance(error, StructureError) else f"{type(error).__name__}: {error}"
    return StructureError(f"what the model computes from fields here cannot be computed: {what}.{place}")


def shown(fn: str, operands: list[str]) -> str:
    """The expression as the user would write it."""
    symbol = SYMBOLS.get(fn)
    if symbol is None:
        return f"{fn}({', '.join(operands)})"
    return f"{symbol}{operands[0]}" if len(operands) == 1 else f"({operands[0]} {symbol} {operands[1]})"


def identifier(text: str) -> str:
    """A name for what is written as `text`; operators are written out."""
    words = re.sub(r"[-+*/%<>=!&|^~]+", lambda found: f"_{NAMES.get(found[0], '')}_", text)
    return re.sub(r"(\W|_)+", "_", words).strip("_")[:LONGEST_NAME].rstrip("_")
