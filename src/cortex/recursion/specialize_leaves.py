"""Leaves get their own code."""

from __future__ import annotations

from dataclasses import replace

from cortex.ir.step import Step, step
from cortex.ra import ir
from cortex.ra.shapes import Declared
from cortex.ra.simplify import simplify_kind
from cortex.recursion.refuse import refuse_unrolled


@step
class SpecializeLeaves(Step[ir.Model]):
    """Split a kind that reduces over any number of children into one for leaves and one for the other nodes.

    before:  kind any, any node:              s = sum over children of h_k; h = tanh(U @ s + b)
    after:   kind any_leaf, a leaf:           h = tanh(b)
             kind any_inner, not a leaf:      s = sum over children of h_k; h = tanh(U @ s + b)

    In the leaf's code every reduction over children is 0, and simplification removes what multiplies it.
    A kind stays whole if its guard tells already whether there are children, or if all its nodes have some.
    """

    def apply(self, program: ir.Model) -> ir.Model:
        """`program` with such kinds split; others, and their order, stay."""
        refuse_unrolled(self, program)
        declared = Declared.of(program)
        names = {k.name for k in program.kinds}
        kinds: list[ir.Kind] = []
        for kind in program.kinds:
            if not _may_be_leaf_or_not(kind, program.slots):
                kinds.append(kind)
                continue
            for suffix, answer in (("leaf", True), ("inner", False)):
                name = _unused(f"{kind.name}_{suffix}", names)
                guard = (*kind.guard, ir.Fact(ir.IsLeaf(), answer))
                kinds.append(simplify_kind(replace(kind, name=name, guard=guard), declared))
        return replace(program, kinds=tuple(kinds))


def _may_be_leaf_or_not(kind: ir.Kind, slots: tuple[str, ...]) -> bool:
    """Does `kind` reduce over children, and leave open whether its nodes have any?"""
    reduced = {let.op.name for let in kind.lets if isinstance(let.op, ir.OverChildren)}
    for fact in kind.guard:
        match fact:
            case ir.Fact(ir.IsLeaf(())):
                return False
            case ir.Fact(ir.IsNone(name, ()), False) if name in slots:
                return False
            case ir.Fact(ir.IsNone(name, ()), True):
                reduced.discard(name)
            case ir.Fact(ir.HasLength(name, count, ()), answer) if answer is (count > 0):
                return False  # there are some, or there are not none
            case ir.Fact(ir.HasLength(name, 0, ()), True):
                reduced.discard(name)
            case ir.Fact(ir.Length(name, ()), answer):
                if answer:
                    return False
                reduced.discard(name)
    paths = [let.op.path for let in kind.lets if isinstance(let.op, ir.State | ir.Field)]
    paths += [fact.test.path for fact in kind.guard]
    has_child = any(path and not isinstance(path[0], ir.Each) for path in paths)
    return bool(reduced) and not has_child


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name
