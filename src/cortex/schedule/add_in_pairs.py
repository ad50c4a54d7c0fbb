"""Add two products at a time, where machines have an instruction for it."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import ROUNDING, Accumulate, For, Func, LoopKind, Scope
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Binary, Expr, Int, Load, Var
from cortex.ir.simplify import add, free_vars, mul, simplify, substitute
from cortex.schedule.locate import constant_extent


def add_in_pairs(f: Func) -> Func:
    """Take two steps at once in unrolled sums of products of narrow inputs and narrow weights that lie in pairs.

    before:  for k_i in 0..8 unrolled: acc[l] += packed[k*4 + k_i // 2, 0, l, k_i mod 2] * x[n, k*8 + k_i]
    after:   for k_i in 0..4 unrolled: acc[l] += packed[k*4 + k_i, 0, l, 0] * x[n, k*8 + k_i*2]
                                                 + packed[k*4 + k_i, 0, l, 1] * x[n, k*8 + k_i*2 + 1]
    """
    in_pairs = {p.buffer for p in f.packings if p.steps == 2}
    inputs = {b.name for b in f.buffers if b.dtype in ROUNDING and b.scope is Scope.SCRATCH}
    if not in_pairs or not inputs:
        return f

    def is_narrow(e: Expr) -> bool:
        match e:
            case Binary("add", x, y):
                return is_narrow(x) and is_narrow(y)
            case Binary("mul", Load(x), Load(y)):
                return x in in_pairs and y in inputs
            case _:
                return False

    def visit(n: Node) -> Node:
        if not isinstance(n, For) or n.kind is not LoopKind.UNROLLED or (constant_extent(n) or 1) % 2:
            return n
        sums = [s for s in walk(n) if isinstance(s, Accumulate)]
        if not sums or not all(s.fn == "add" and is_narrow(s.value) and n.var not in free_vars(s.index) for s in sums):
            return n
        paired = {s: replace(s, value=_both(s.value, n.var)) for s in sums}
        if not all(_whole_words(s.value, in_pairs) for s in paired.values()):
            return n
        new: For = rewrite(n, lambda x: paired.get(x, x) if isinstance(x, Accumulate) else x)
        return replace(new, hi=Int((constant_extent(n) or 0) // 2))

    return replace(f, body=tuple(rewrite(s, visit) for s in f.body))


def _both(value: Expr, step: str) -> Expr:
    """The sum of `value` at the steps 2 * step and 2 * step + 1."""
    first, second = (substitute(value, {step: add(mul(Var(step), 2), i)}) for i in (0, 1))
    both: Expr = rewrite(Binary("add", first, second), _simplified)
    return both


def _simplified(n: Node) -> Node:
    return replace(n, index=tuple(simplify(i) for i in n.index)) if isinstance(n, Load) else n


def _whole_words(value: Expr, in_pairs: set[str]) -> bool:
    """Does every weight say which half of its word it is?"""
    return all(isinstance(n.index[-1], Int) for n in walk(value) if isinstance(n, Load) and n.buffer in in_pairs)
