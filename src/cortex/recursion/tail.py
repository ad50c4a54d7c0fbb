"""Cutting the graph of a kind: what crosses the cut, and the tail after it.

    z = sigmoid(...); g = tanh(...); u = 1 - z; h = u * g; return h

    cut (u, g):  the tail is  h = u * g
    cut (z, g):  the tail is  u = 1 - z; h = u * g
    cut (h):     the tail is empty

A tail is pointwise: each element of a state follows from the same element of what crosses (or from the element that
broadcasting pairs with it). What depends on parameters only need not cross.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from cortex.ra import ir
from cortex.ra.shapes import operand_names

POINTWISE = (ir.Unary, ir.Binary, ir.Where, ir.Cast)
BYTES = 4


@dataclass(frozen=True)
class Tail:
    """The lets of `kind` after a cut, constants they read among them, and the values that cross, in order."""

    kind: ir.Kind
    crossing: tuple[ir.Let, ...]
    lets: tuple[ir.Let, ...]

    @property
    def bytes(self) -> int:
        """The size of what crosses, for one node."""
        return BYTES * sum(prod(let.type.shape) for let in self.crossing)

    @property
    def moves(self) -> bool:
        """Is there anything to compute after the cut?"""
        return any(isinstance(let.op, POINTWISE) for let in self.lets)


class NoTail(Exception):
    """There is no tail at this cut; the message says why, for a `ScheduleError` to tell."""


def tail_after(kind: ir.Kind, cut: Collection[str]) -> Tail:
    """The tail of `kind` after the values `cut`; `NoTail` where something else is needed."""
    lets = {let.name: let for let in kind.lets}
    constant = _constants(kind)
    crossing: set[str] = set()
    after: set[str] = set()
    stack = list(kind.results)
    while stack:
        name = stack.pop()
        let = lets[name]
        if name in crossing or name in after:
            continue
        if name in cut:
            if let.type.dtype != "f32":
                raise NoTail(f"{name!r} is {let.type.dtype}, and only f32 values are kept per node")
            crossing.add(name)
        elif name in constant or isinstance(let.op, POINTWISE):
            after.add(name)
            stack += operand_names(let.op)
        else:
            what = type(let.op).__name__
            raise NoTail(f"{name!r} ({what}) would be computed after the cut, where only pointwise operators can be")
    return Tail(
        kind,
        tuple(let for let in kind.lets if let.name in crossing),
        tuple(let for let in kind.lets if let.name in after),
    )


def tails(kind: ir.Kind) -> list[Tail]:
    """The tails of `kind` after each point in the order of its lets, the smallest crossing first, then the latest."""
    found: list[Tail] = []
    names = [let.name for let in kind.lets]
    constant = _constants(kind)
    for end in range(len(names) - 1, 0, -1):
        try:
            tail = tail_after(kind, set(names[:end]) - constant)
        except NoTail:
            continue
        if tail.moves and tail not in found:
            found.append(tail)
    return sorted(found, key=lambda tail: tail.bytes)


def _constants(kind: ir.Kind) -> set[str]:
    """The lets that depend on parameters only."""
    constant: set[str] = set()
    for let in kind.lets:
        reads_node = isinstance(let.op, ir.Field | ir.State | ir.Arity | ir.OverChildren) or let.over is not None
        if not reads_node and all(name in constant for name in operand_names(let.op)):
            constant.add(let.name)
    return constant
