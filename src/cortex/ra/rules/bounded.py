"""Which values are finite for all inputs of a node, so that 0 times them is 0."""

from __future__ import annotations

from math import isfinite

from cortex.ra import ir
from cortex.ra.rules.graph import Graph
from cortex.ra.shapes import operand_names

_KEEP = (
    ir.Cast, ir.Concat, ir.Contract, ir.Lookup, ir.OverChildren, ir.Reduce, ir.Slice, ir.Reshape, ir.Transpose,
    ir.Broadcast, ir.Where,
)  # fmt: skip
"""Finite where all operands are."""


def is_bounded(g: Graph, name: str) -> bool:
    """Is `name` made of weights, constants and gates (sigmoid, tanh, truth values) by sums and products alone?

    Weights are taken to be finite. A gate is finite whatever it is computed from, unless that is NaN.
    """
    seen: set[str] = set()
    left = [name]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        op = g.op(name)
        match op:
            case ir.Fill(value, _) if not isfinite(value):
                return False
            case ir.Param() | ir.Fill() | ir.Unary("sigmoid" | "tanh") | ir.Arity():
                continue
            case ir.Unary("neg" | "abs") | ir.Binary("add" | "sub" | "mul" | "min" | "max"):
                left += operand_names(op)
            case _ if g.type(name).dtype != "f32":
                continue
            case _ if isinstance(op, _KEEP):
                left += operand_names(op)
            case _:
                return False
    return True
