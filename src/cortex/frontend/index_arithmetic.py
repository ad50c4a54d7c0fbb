"""Computing with an integer field to index a table: `w.emb[node.word + 1]`, `w.emb[2 * node.word]`.

RA looks up a row by a field itself. Row `2 * word + 1` of a table is row `word` of its slice `[1::2]`, which has as
many rows as there are words that are right, so that the linearizer checks the range as always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from cortex.frontend.builder import Value, builder
from cortex.frontend.facts import ABSENT
from cortex.frontend.indexing import lookup
from cortex.frontend.movement import slice_axes
from cortex.frontend.spans import fail
from cortex.frontend.tensor import Operand, Tensor, index_of


class Shifted(Tensor):
    """`scale * field + offset` with integers: a number to compute with, or an index.

    Which of both decides what the field is, so the number is made when it is computed with, as the model says it.
    """

    __slots__ = ("_field", "_make", "_offset", "_scale")

    def __init__(self, field: Operand, scale: int, offset: int, make: Callable[[], Tensor]) -> None:
        self._field, self._scale, self._offset, self._make = field, scale, offset, make

    @property
    def _value(self) -> Value:  # type: ignore[override]
        return self._make()._cortex_value()

    def _cortex_row(self, table: Value) -> Value:
        """The row of the table that has this number."""
        if self._scale < 1 or self._offset < 0:
            raise fail(
                f"a table is indexed with {self._text()}, which can be negative. Make it a field, which is checked: "
                f'fields={{"row": lambda node: {self._text()}}}, and index with node.row.'
            )
        if table.shape and self._offset >= table.shape[0]:
            raise fail(f"{table.text()} is indexed with {self._text()}, but has {table.shape[0]} rows only.")
        ranges = [(0, n, 1) for n in table.shape]
        ranges[:1] = [(self._offset, n, self._scale) for n in table.shape[:1]]
        return lookup(slice_axes(table, ranges), index_of(self._field))

    def _text(self) -> str:
        field, offset = repr(self._field).split(" = ")[0], self._offset
        if self._scale == -1:
            return f"{offset} - {field}" if offset else f"-{field}"
        scaled = field if self._scale == 1 else f"{self._scale} * {field}"
        return scaled if not offset else f"{scaled} {'-' if offset < 0 else '+'} {abs(offset)}"

    def __add__(self, other: Any) -> Tensor:
        return self._shift(1, other, lambda: Tensor(self._value) + other)

    def __radd__(self, other: Any) -> Tensor:
        return self._shift(1, other, lambda: other + Tensor(self._value))

    def __sub__(self, other: Any) -> Tensor:
        return self._shift(1, -other if _is_int(other) else other, lambda: Tensor(self._value) - other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._shift(-1, other, lambda: other - Tensor(self._value))

    def __mul__(self, other: Any) -> Tensor:
        return self._scaled(other, lambda: Tensor(self._value) * other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._scaled(other, lambda: other * Tensor(self._value))

    def __neg__(self) -> Tensor:
        return self._scaled(-1, lambda: -Tensor(self._value))

    def _shift(self, sign: int, other: Any, make: Callable[[], Tensor]) -> Tensor:
        if not _is_int(other):
            return make()
        return Shifted(self._field, sign * self._scale, sign * self._offset + other, make)

    def _scaled(self, other: Any, make: Callable[[], Tensor]) -> Tensor:
        if not _is_int(other):
            return make()
        return Shifted(self._field, other * self._scale, other * self._offset, make)


class IndexArithmetic(Operand):
    """Operators of an attribute that may be an index."""

    __slots__ = ()
    _cortex_name: str
    _cortex_sample: Callable[[], Any]

    def _cortex_shifted(self) -> Tensor:
        """As a tensor, or as something that can still become an index if it may be an integer."""
        sample = self._cortex_sample()
        may_be = sample is ABSENT or (isinstance(sample, int | np.integer) and not isinstance(sample, bool))
        if not may_be or self._cortex_name in builder().knowledge.accessors.shapes:
            return Tensor(self._cortex_value())
        return Shifted(self, 1, 0, lambda: Tensor(self._cortex_value()))

    def __add__(self, other: Any) -> Tensor:
        return self._cortex_shifted() + other if _is_int(other) else super().__add__(other)

    def __radd__(self, other: Any) -> Tensor:
        return other + self._cortex_shifted() if _is_int(other) else super().__radd__(other)

    def __sub__(self, other: Any) -> Tensor:
        return self._cortex_shifted() - other if _is_int(other) else super().__sub__(other)

    def __rsub__(self, other: Any) -> Tensor:
        return other - self._cortex_shifted() if _is_int(other) else super().__rsub__(other)

    def __mul__(self, other: Any) -> Tensor:
        return self._cortex_shifted() * other if _is_int(other) else super().__mul__(other)

    def __rmul__(self, other: Any) -> Tensor:
        return other * self._cortex_shifted() if _is_int(other) else super().__rmul__(other)

    def __neg__(self) -> Tensor:
        return -self._cortex_shifted()

    def __and__(self, other: Any) -> NoReturn:
        raise self._cortex_bits("&")

    def __or__(self, other: Any) -> NoReturn:
        raise self._cortex_bits("|")

    def __xor__(self, other: Any) -> NoReturn:
        raise self._cortex_bits("^")

    def __lshift__(self, other: Any) -> NoReturn:
        raise self._cortex_bits("<<")

    def __rshift__(self, other: Any) -> NoReturn:
        raise self._cortex_bits(">>")

    def __invert__(self) -> NoReturn:
        raise self._cortex_bits("~")

    __rand__, __ror__, __rxor__, __rlshift__, __rrshift__ = __and__, __or__, __xor__, __lshift__, __rshift__

    def _cortex_bits(self, operator: str) -> Exception:
        field = f"node.{self._cortex_name}"
        text = f"{operator}{field}" if operator == "~" else f"{field} {operator} ..."
        return fail(
            f"`{operator}` of {field}: the bits of a field cannot be computed with. Make the result a field: "
            f'fields={{"bits": lambda node: {text}}}, and read node.bits.'
        )


def _is_int(x: object) -> bool:
    return type(x) is int
