"""What a primitive does to a sum before it is stored: add a bias, add a residual, apply an activation function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from cortex.errors import ModelError
from cortex.ilir.ir import Buffer, Scope
from cortex.ir.scalar import Binary, Expr, Float, Load, Unary

Activation = Literal["relu", "relu6", "sigmoid", "tanh", "silu"]

_FUNCTIONS: dict[Activation, Callable[[Expr], Expr]] = {
    "relu": lambda x: Binary("max", x, Float(0.0)),
    "relu6": lambda x: Binary("min", Binary("max", x, Float(0.0)), Float(6.0)),
    "sigmoid": lambda x: Unary("sigmoid", x),
    "tanh": lambda x: Unary("tanh", x),
    "silu": lambda x: Binary("mul", x, Unary("sigmoid", x)),
}
_LONG: frozenset[Activation] = frozenset({"sigmoid", "tanh", "silu"})


@dataclass(frozen=True)
class Epilogue:
    """activation(sum + bias + residual); what is not there is left out."""

    bias: bool = False
    residual: bool = False
    activation: Activation | None = None

    @property
    def is_long(self) -> bool:
        """Does the activation function take many operations?"""
        return self.activation in _LONG

    def value(self, total: Expr, column: Expr, place: tuple[Expr, ...]) -> Expr:
        """The result at a place of the output, in a column of the bias."""
        if self.bias:
            total = Binary("add", total, Load("bias", (column,)))
        if self.residual:
            total = Binary("add", total, Load("residual", place))
        return total if self.activation is None else _FUNCTIONS[self.activation](total)

    def buffers(self, columns: Expr, shape: tuple[Expr, ...]) -> tuple[Buffer, ...]:
        """What the value reads besides the sum, for an output of `shape`."""
        bias = (Buffer("bias", "f32", (columns,), Scope.PARAM),) if self.bias else ()
        return (*bias, Buffer("residual", "f32", shape, Scope.FIELD)) if self.residual else bias


PLAIN = Epilogue()


def activation_of(asked: object, who: str) -> Activation | None:
    """The activation function that a user asked for."""
    for known in get_args(Activation):
        if asked == known:
            return known  # type: ignore[no-any-return]
    if asked is not None:
        names = ", ".join(repr(name) for name in get_args(Activation))
        raise ModelError(f"{who}: there is no activation {asked!r}; use {names} or None")
    return None
