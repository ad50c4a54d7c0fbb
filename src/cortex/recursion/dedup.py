"""Dedup: compute equal subtrees once."""

from __future__ import annotations

from dataclasses import replace

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.recursion.refuse import refuse_positions, refuse_unrolled


@step
class Dedup(Step[ir.Model]):
    """Make equal subtrees of a request one, when it is linearized.

    before:  (a (the cat)) (b (the cat))     10 nodes: two of them `the`, two `cat`, two `(the cat)`
    after:   (a x) (b x) with x = (the cat)   7 nodes
    legal:   always, and every state keeps its bits: equal are nodes of one kind with the same children and with
             fields that are equal bit by bit.

    The result has every node of the request all the same. Linearizing takes longer, by a hash of each node; it pays
    where structures repeat themselves: equal leaves, requests of many similar structures.
    """

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with `Model.dedup` set."""
        refuse_unrolled(self, program)
        refuse_positions(self, program)
        return replace(program, dedup=True)
