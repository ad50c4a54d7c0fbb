"""The backward graph of the edges of a list, seen from the children: what each child gets of its users' adjoints.

An adjoint of a child's state is needed at the child, and RA has no values that are stored per edge. So the graph of
edges is computed at the child, for each of its users; the user's values are read over the edge.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortex.gradient.kind_backward import EXPORT, KEEP, KindBackward, declared, is_kept
from cortex.gradient.refuse import refuse
from cortex.gradient.rules import masked, pull_back
from cortex.gradient.tape import Tape
from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.shapes import operand_names, rename_operands
from cortex.ra.simplify import drop_dead_lets

USERS = "users"
OVER_USERS = (ir.Each(USERS),)


@dataclass(frozen=True)
class Emission:
    """Lets per edge to the users of a node, and which of them are adjoints of the node's states and fields."""

    path: tuple[ir.Hop, ...]
    lets: tuple[ir.Let, ...]
    adjoints: tuple[tuple[str, str], ...]


def emissions(k: KindBackward) -> list[Emission]:
    """What nodes get of the adjoints of users of kind `k`, by the way that leads to them."""
    found = []
    for path in sorted({path for path, _ in k.outgoing}, key=repr):
        b = Builder(declared(k.model, k.kind, (USERS,), k.builder.lets))
        given = sorted((name, g) for (way, name), g in k.outgoing.items() if way == path)
        adjoints = tuple((name, b.add(ir.State(EXPORT + g, OVER_USERS))) for name, g in given)
        found.append(Emission(path, b.lets, adjoints))
    for relation in sorted({let.over for let in k.kind.lets if let.over is not None}):
        edge = _EdgeBackward(k, relation)
        edge.run()
        if edge.adjoints:
            results = tuple(edge.adjoints.values())
            lets = drop_dead_lets(edge.builder.lets, results)
            found.append(Emission((ir.Each(relation),), lets, tuple(edge.adjoints.items())))
    return found


class _EdgeBackward:
    def __init__(self, k: KindBackward, relation: str) -> None:
        self._of = k
        self._relation = relation
        self.builder = Builder(declared(k.model, k.kind, (USERS,), k.builder.lets))
        self.adjoints: dict[str, str] = {}
        self._values: dict[str, str] = {}

    def run(self) -> None:
        """Go back through the lets of the edges."""
        k, relation = self._of, self._relation
        tape = Tape(self.builder, k.lets, self.value, lambda x: x in k.active and k.lets[x].over == relation)
        for let in reversed(k.kind.lets):
            match let.op:
                case ir.OverChildren(fn, x, name) if name == relation and let.name in k.shares and tape.wants(x):
                    share = self.builder.add(ir.State(EXPORT + k.shares[let.name], OVER_USERS))
                    tape.give(x, share if fn == "add" else masked(x, let.name, share, tape))
                    continue
            g = tape.total(let.name) if let.over == relation and let.name in k.active else None
            if g is None:
                continue
            match let.op:
                case ir.State(name) | ir.Field(name):
                    known = self.adjoints.get(name)
                    self.adjoints[name] = g if known is None else tape.add(ir.Binary("add", known, g))
                case _:
                    pull_back(let, g, tape)

    def value(self, name: str) -> str:
        """The forward value of a let of the user, or of its edge to this node."""
        if name not in self._values:
            self._values[name] = self._value(name)
        return self._values[name]

    def _value(self, name: str) -> str:
        let, k, add = self._of.lets[name], self._of, self.builder.add
        if let.over is not None:
            match let.op:
                case ir.State(read, path) | ir.Field(read, path):
                    if len(path) > 1:
                        refuse("what a node reads of the children of its children in a list", let.span)
                    return add(ir.Field(read))
        elif name in k.state_of:
            return add(ir.Field(k.state_of[name], OVER_USERS))
        elif name not in k.constant:
            match let.op:
                case ir.Field(read, ()):
                    return add(ir.Field(read, OVER_USERS))
                case _ if is_kept(let):
                    return add(ir.Field(KEEP + name, OVER_USERS))
                case ir.Field() | ir.State() | ir.Arity():
                    refuse("a number that a node reads of another node", let.span)
        operands = {x: self.value(x) for x in operand_names(let.op)}
        return add(rename_operands(let.op, operands))
