"""FixArity: nodes with a known number of children get their own code."""

from __future__ import annotations

from dataclasses import replace

from cortex.errors import ScheduleError
from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.guards import length_told
from cortex.ra.shapes import Declared
from cortex.ra.simplify import simplify_kind
from cortex.ra.write_out import write_out
from cortex.recursion.refuse import refuse


@step
class FixArity(Step[ir.Model]):
    """Give the nodes of a kind that have `count` children code of their own, with one copy of the body per child.

    before:  kind inner, not a leaf:                       s = sum over children of h_k; h = tanh(U @ s)
    after:   kind inner_2, not a leaf, 2 children:         s = children[0].h + children[1].h; h = tanh(U @ s)
             kind inner, not a leaf, not 2 children:       s = sum over children of h_k; h = tanh(U @ s)

    `relation` names the list where the kind reads several. If the guard tells the number already, the kind is
    rewritten and there is nothing to split.

    legal:   the kind reads children of the list one by one, there is at least one, and the guard tells no other number.
    """

    kind: str
    count: int
    relation: str = ""

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with the kind split in two."""
        kind = next((k for k in program.kinds if k.name == self.kind), None)
        if kind is None:
            known = ", ".join(k.name for k in program.kinds)
            raise ScheduleError(f"{self}: {program.name} has no kind {self.kind!r}. Its kinds: {known}.")
        if any(k.variant_of for k in program.kinds):
            refuse(self, "the model is unrolled already. Put FixArity before Unroll.", program, kind)
        relation = self._relation(program, kind)
        told = length_told(kind.guard, relation)
        if self.count < 1:
            refuse(self, "a node without children is a leaf; the number must be at least 1.", program, kind)
        if told not in (None, self.count):
            refuse(self, f"nodes of kind {kind.name!r} have {told} in {relation!r}.", program, kind)
        declared = Declared.of(program)
        if told is not None:
            return _with(program, kind, (simplify_kind(write_out(kind, relation, self.count, declared), declared),))
        name = f"{kind.name}_{self.count}"
        while any(k.name == name for k in program.kinds):
            name += "_"
        test = ir.HasLength(relation, self.count)
        fixed = replace(kind, name=name, guard=(*kind.guard, ir.Fact(test, True)))
        rest = replace(kind, guard=(*kind.guard, ir.Fact(test, False)))
        return _with(program, kind, (simplify_kind(write_out(fixed, relation, self.count, declared), declared), rest))

    def _relation(self, m: ir.Model, kind: ir.Kind) -> str:
        """The list relation whose length is fixed."""
        reduced = tuple(dict.fromkeys(let.op.name for let in kind.lets if isinstance(let.op, ir.OverChildren)))
        if not reduced:
            refuse(self, f"kind {kind.name!r} reduces over no list of children.", m, kind)
        lists = ", ".join(reduced)
        if self.relation and self.relation not in reduced:
            refuse(self, f"kind {kind.name!r} reduces over {lists}.", m, kind)
        if not self.relation and len(reduced) > 1:
            refuse(self, f"kind {kind.name!r} reduces over {lists}; say over which with relation=.", m, kind)
        return self.relation or reduced[0]


def _with(m: ir.Model, old: ir.Kind, new: tuple[ir.Kind, ...]) -> ir.Model:
    at = m.kinds.index(old)
    return replace(m, kinds=(*m.kinds[:at], *new, *m.kinds[at + 1 :]))
