"""InputsInside: compute what a node's own data gives when its turn comes, not ahead of the recursion."""

from __future__ import annotations

from dataclasses import replace

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.recursion.refuse import refuse_unrolled


@step
class InputsInside(Step[ir.Model]):
    """Leave products that need no child's state inside the recursion.

    before:  for all nodes: x = W @ emb[node.word]          one product over all nodes, before the recursion
             for each group: h = tanh(x + U @ h_child)
    after:   for each group: h = tanh(W @ emb[node.word] + U @ h_child)
    legal:   always, up to rounding: the two sums of an element become one.

    Ahead of the recursion, the weights of inputs are read once for all nodes; inside, once per group, but x is not
    written and read back. Kinds that need no child at all are computed ahead in either case.
    """

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with `Model.inputs_first` false."""
        refuse_unrolled(self, program)
        return replace(program, inputs_first=False)
