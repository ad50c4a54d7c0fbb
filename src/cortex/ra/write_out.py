"""Kinds of any number of children as kinds of one number."""

from __future__ import annotations

from dataclasses import replace

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands


def write_out(kind: ir.Kind, relation: str, count: int, declared: Declared) -> ir.Kind:
    """`kind` with one copy of what is per edge of `relation` for each of `count` >= 1 children.

    before:  t_k = tanh(h_k); s = sum over children of t_k
    after:   t_0 = tanh(children[0].h); t_1 = tanh(children[1].h); s = t_0 + t_1

    Reductions are written out in order. That the guard tells the number is up to the caller.
    """
    b = Builder(declared, [let.name for let in kind.lets])
    shared: dict[str, str] = {}
    copies: list[dict[str, str]] = [{} for _ in range(count)]
    for let in kind.lets:
        if let.over == relation:
            for index, copy in enumerate(copies):
                op = _at(let.op, relation, index)
                names = {x: copy.get(x) or shared[x] for x in operand_names(op)}
                name = f"{let.name}_{index}"
                taken = name in b or name in b.reserved
                copy[let.name] = b.add(rename_operands(op, names), None if taken else name, let.span)
        elif isinstance(let.op, ir.OverChildren) and let.op.name == relation:
            first, *others = (copy[let.op.x] for copy in copies)
            for other in others:
                first = b.add(ir.Binary(let.op.fn, first, other), span=let.span)
            shared[let.name] = first
        else:
            shared[let.name] = b.add(rename_operands(let.op, shared), let.name, let.span)
    return replace(kind, lets=b.lets, results=tuple(shared[r] for r in kind.results))


def _at(op: ir.Op, relation: str, index: int) -> ir.Op:
    """`op` for child `index`."""
    match op:
        case ir.Field(name, (ir.Each(), *rest)):
            return ir.Field(name, (ir.Item(relation, index), *rest))
        case ir.State(name, (ir.Each(), *rest)):
            return ir.State(name, (ir.Item(relation, index), *rest))
        case _:
            return op
