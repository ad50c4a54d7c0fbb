"""Specialize: give kinds groups and code of their own, or let them share."""

from __future__ import annotations

from dataclasses import replace

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.recursion.refuse import find_kind, refuse_unrolled


@step
class Specialize(Step[ir.Model]):
    """Give the kinds called `kinds`, or all if None, groups of their own; all other kinds share groups.

    before:  for n in the nodes of a group: if node_kind(n) == 0: leaf(n)         (shared; Specialize(()) makes it so)
             for n in the nodes of a group: if node_kind(n) == 1: inner(n)
    after:   for n in all leaves: leaf(n)                                         (what reads no child comes first)
             for n in the nodes of a group: inner(n)
    legal:   there are kinds of these names. Every state keeps its bits.

    A traced model has every kind specialized. `Specialize(())` is the other extreme: one group for each height, and a
    test at each node, such as the leaf check of a recursive function.
    """

    kinds: tuple[str, ...] | None = None

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with `Kind.own_group` set accordingly."""
        refuse_unrolled(self, program)
        for name in self.kinds or ():
            find_kind(program, name, self)
        own = {k.name for k in program.kinds} if self.kinds is None else set(self.kinds)
        return replace(program, kinds=tuple(replace(k, own_group=k.name in own) for k in program.kinds))
