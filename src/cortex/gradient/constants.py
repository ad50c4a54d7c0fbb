"""From adjoints of a kind's constants, summed over its nodes, to gradients of parameters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cortex.gradient.kind_backward import KindBackward
from cortex.gradient.rules import pull_back
from cortex.gradient.tape import Tape
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import Declared, operand_names, rename_operands

SUM = "sum:"


@dataclass(frozen=True)
class ConstantGraph:
    """Lets over parameters and over sums, which are parameters called `sum:` and a let of the kind.

    `direct` are constants that are parameters themselves: their sums are gradients. `results` are the lets that are
    gradients of parameters besides.
    """

    kind: int
    direct: tuple[tuple[str, str], ...]
    lets: tuple[ir.Let, ...]
    results: tuple[tuple[str, str], ...]


def constant_graph(m: ir.Model, number: int, k: KindBackward, summed: Collection[str]) -> ConstantGraph:
    """The graph of a kind whose constants `summed` have adjoints."""
    direct = []
    types = {p.name: p.type for p in m.params} | {SUM + let: k.lets[let].type for let in summed}
    b = Builder(Declared(types, {}, {}, ()))
    values: dict[str, str] = {}

    def value(name: str) -> str:
        if name not in values:
            op = k.lets[name].op
            values[name] = b.add(rename_operands(op, {x: value(x) for x in operand_names(op)}))
        return values[name]

    tape = Tape(b, k.lets, value, lambda x: x in k.active)
    found: dict[str, str] = {}
    for let in reversed(k.kind.lets):
        if let.name not in k.constant or let.name not in k.active:
            continue
        if isinstance(let.op, ir.Param) and let.name in summed:
            direct.append((let.name, let.op.name))
        elif let.name in summed:
            tape.give(let.name, b.add(ir.Param(SUM + let.name)))
        g = tape.total(let.name)
        if g is None:
            continue
        if isinstance(let.op, ir.Param):
            known = found.get(let.op.name)
            found[let.op.name] = g if known is None else b.add(ir.Binary("add", known, g))
        else:
            pull_back(let, g, tape)
    return ConstantGraph(number, tuple(direct), b.lets, tuple(found.items()))
