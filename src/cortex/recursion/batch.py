"""Batch: choose which nodes run together."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.recursion.refuse import refuse, refuse_unrolled


@step
class Batch(Step[ir.Model]):
    """Choose the policy by which the nodes of a request become groups.

    before:  groups of one height and kind, lowest first                  (the height of a leaf is 0)
    after:   policy "depth": groups of one depth and kind, deepest first  (the depth of a root is 0)
             policy "agenda": all ready nodes of one kind, again and again, of that which has least to wait for
             policy "none": one node at a time
    legal:   always, and every state keeps its bits: no policy runs a node before its children, and a node's value
             does not depend on the nodes that run with it.

    Height has all leaves in one group, and is best where one kind has all inner nodes. Depth keeps together what hangs
    at equal distance from the roots. Agenda has fewer groups where kinds alternate along paths of different lengths,
    and is taken by itself where several kinds read states of children. None is what an interpreter of the recursion
    would do, and is there to be compared with.
    """

    policy: ir.Batching = "height"

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with the policy chosen."""
        refuse_unrolled(self, program)
        known = get_args(ir.Batching)
        if self.policy not in known:
            refuse(self, f"there is no policy {self.policy!r}. The policies: {', '.join(known)}.", program)
        return replace(program, batching=self.policy)
