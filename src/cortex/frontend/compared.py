"""Comparisons of a child's number: `k.cost > 3`, in a loop or comprehension over children."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cortex.frontend import pointwise
from cortex.frontend.builder import Value
from cortex.frontend.tensor import Operand, Tensor, value_of


class Compared(Operand):
    """A question about the child where Python needs its answer, a computed truth value where tensors meet it.

    So `cortex.where(k.cost > 3, x, y)` is the same expression for every child, and `if k.cost > 3:` decides by child.
    """

    __slots__ = ("_ask", "_compute")

    def __init__(self, ask: Callable[[], bool], compute: Callable[[], Value]) -> None:
        self._ask = ask
        self._compute = compute

    def _cortex_value(self) -> Value:
        return self._compute()

    def _cortex_condition(self) -> Tensor:
        return Tensor(self._compute())

    def __bool__(self) -> bool:
        return self._ask()

    def __index__(self) -> int:
        return int(self._ask())

    def __float__(self) -> float:
        return float(self._ask())

    def __repr__(self) -> str:
        return repr(self._ask())

    def __eq__(self, other: object) -> Any:
        return self._ask() == (other._ask() if isinstance(other, Compared) else other)

    def __hash__(self) -> int:
        return hash(self._ask())

    def __add__(self, other: Any) -> Any:
        return self._ask() + other if _is_number(other) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return other + self._ask() if _is_number(other) else super().__radd__(other)

    def __sub__(self, other: Any) -> Any:
        return self._ask() - other if _is_number(other) else super().__sub__(other)

    def __rsub__(self, other: Any) -> Any:
        return other - self._ask() if _is_number(other) else super().__rsub__(other)

    def __mul__(self, other: Any) -> Any:
        return self._ask() * other if _is_number(other) else super().__mul__(other)

    def __rmul__(self, other: Any) -> Any:
        return other * self._ask() if _is_number(other) else super().__rmul__(other)

    def __and__(self, other: Any) -> Any:
        if isinstance(other, Compared):
            return Compared(lambda: self._ask() & other._ask(), lambda: self._logical("and", other))
        return Tensor(self._logical("and", other)) if isinstance(other, Operand) else self._ask() & other

    def __or__(self, other: Any) -> Any:
        if isinstance(other, Compared):
            return Compared(lambda: self._ask() | other._ask(), lambda: self._logical("or", other))
        return Tensor(self._logical("or", other)) if isinstance(other, Operand) else self._ask() | other

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Compared:
        return Compared(lambda: not self._ask(), lambda: pointwise.negate(self._compute()))

    def _logical(self, fn: Any, other: Operand) -> Value:
        return pointwise.logical(fn, self._compute(), value_of(other))


def _is_number(x: object) -> bool:
    return isinstance(x, bool | int | float | Compared)
