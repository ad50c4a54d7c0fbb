"""Copies of statements: loops and lets are unique in a function, so a second copy binds fresh names."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import For, Let
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Var
from cortex.schedule.locate import Block, Names


def fresh_copy(body: Block, names: Names) -> Block:
    """`body` with every loop and let in it renamed.

    before:  for k in 0..8: { let a = x[k]; t += a }
    after:   for k_1 in 0..8: { let a_1 = x[k_1]; t += a_1 }
    """
    bound = [n.var if isinstance(n, For) else n.var.name for s in body for n in walk(s) if isinstance(n, For | Let)]
    new = {name: names.fresh(name) for name in dict.fromkeys(bound)}

    def visit(n: Node) -> Node:
        match n:
            case Var(name, dtype) if name in new:
                return Var(new[name], dtype)
            case For(var=var) if var in new:
                return replace(n, var=new[var])
            case _:
                return n

    return tuple(rewrite(s, visit) for s in body) if new else body
