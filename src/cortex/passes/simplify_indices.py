"""Simplify the arithmetic of indices and bounds."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import For, Func, Stmt
from cortex.ir.node import Node, map_operands
from cortex.ir.scalar import Int
from cortex.ir.simplify import simplify


def simplify_indices(f: Func) -> Func:
    """Put every expression into canonical form, using the constant bounds of the loops around it.

    before:  for o in 0..16: for l in 0..16: packed[(o*16 + l) // 16, k, 0, (o*16 + l) mod 16]
    after:   for o in 0..16: for l in 0..16: packed[o, k, 0, l]
    """
    return replace(f, body=tuple(_statement(s, {}) for s in f.body))


def _statement(s: Stmt, bounds: dict[str, tuple[int, int]]) -> Stmt:
    if isinstance(s, For) and isinstance(s.lo, Int) and isinstance(s.hi, Int):
        bounds = {**bounds, s.var: (s.lo.value, s.hi.value - 1)}

    def visit(n: Node) -> Node:
        return _statement(n, bounds) if type(n).__module__ == "cortex.ilir.ir" else simplify(n, bounds)  # type: ignore[arg-type]

    return map_operands(s, visit)
