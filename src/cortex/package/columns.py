"""What a C program says about each node: a column for every field, and for every attribute that guards ask about.

    integers   a field that is an index, or an attribute that is compared with integers or lengths: the value itself
    numbers    a float field
    codes      an attribute that is compared with anything else, strings above all: the number of the value in a list
    lengths    an attribute whose length is asked for: the length
    presence   an attribute of which only matters whether there is one

Where some kind of node has None there, a column has an array of bytes that says which nodes have a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from cortex.errors import ModelError
from cortex.ra.ir import (
    Compares,
    Counts,
    Equals,
    HasLength,
    IsAboveLeaves,
    IsLeaf,
    IsNone,
    Length,
    Model,
    Test,
    Value,
    answer_key,
)

What = Literal["integers", "numbers", "codes", "lengths", "presence"]


@dataclass(frozen=True)
class Column:
    """One column; `values` are the known values of codes, in order."""

    name: str
    what: What
    nullable: bool
    values: tuple[Any, ...] = ()

    @property
    def is_float(self) -> bool:
        """Are its values floats?"""
        return self.what == "numbers"


def columns(m: Model) -> tuple[Column, ...]:
    """The columns of a model: its fields, then the other attributes in the order they are asked about."""
    tests = list(_attribute_tests(m))
    dtypes = {f.name: f.type.dtype for f in m.fields}
    return tuple(_column(name, dtypes.get(name), tests) for name in dict.fromkeys((*dtypes, *(n for n, _ in tests))))


def _column(name: str, dtype: str | None, tests: list[tuple[str, Any]]) -> Column:
    asked = [fact for n, fact in tests if n == name]
    named = {answer_key(c): c for fact in asked for c in _constants(fact.test, fact.answer)}.values()
    nullable = any(isinstance(f.test, IsNone) and f.answer is True for f in asked) or None in named
    values = tuple(c for c in named if c is not None)
    compared = any(isinstance(f.test, Compares) for f in asked)
    has_length = any(isinstance(f.test, Length | HasLength) for f in asked)
    if has_length and (dtype is not None or values):
        raise ModelError(f"export: the model asks for the length of '{name}' and for its value; C has no such column.")
    what: What
    if dtype is not None:
        what = "integers" if dtype == "i64" else "numbers"
    elif compared:
        what = "numbers"
    elif has_length:
        what = "lengths"
    elif not values and not any(isinstance(f.test, Counts) for f in asked):
        what = "presence"
    else:
        what = "integers" if all(isinstance(v, int) and abs(v) < 2**63 for v in values) else "codes"
    return Column(name, what, nullable, values if what == "codes" else ())


def _attribute_tests(m: Model) -> Iterator[tuple[str, Any]]:
    """What guards ask about attributes that are no relations."""
    for kind in m.kinds:
        for fact in kind.guard:
            if not isinstance(fact.test, IsLeaf | IsAboveLeaves) and fact.test.name not in (*m.slots, *m.lists):
                yield fact.test.name, fact


def _constants(test: Test, answer: Any) -> list[Any]:
    """The values that a question names, or that were its answer."""
    match test:
        case Equals():
            return [test.value]
        case Value():
            return [answer]
        case _:
            return []
