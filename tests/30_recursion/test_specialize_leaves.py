"""Kinds that do not tell leaves from other nodes are split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from ra_models import child_sum, linearize, random_nodes, random_params, tree_fc, tree_lstm

from cortex.ra import ir
from cortex.ra.interp import run
from cortex.ra.show import show
from cortex.ra.verify import verify
from cortex.recursion.hoist import Hoist
from cortex.recursion.specialize_leaves import SpecializeLeaves


def test_child_sum_is_split(golden: Callable[[str, str], None]) -> None:
    m = SpecializeLeaves().apply(child_sum())
    verify(m)
    golden("recursion/specialize_child_sum", show(m))
    leaf, inner = m.kinds
    assert (leaf.name, inner.name) == ("any_leaf", "any_inner")
    assert not any(isinstance(let.op, ir.OverChildren | ir.State) for let in leaf.lets)
    hoisted = Hoist().apply(m).kinds[0]
    assert not any(isinstance(let.op, ir.Contract) for let in hoisted.lets)
    assert any(isinstance(let.op, ir.OverChildren) for let in inner.lets)


def test_meaning_stays() -> None:
    rng = np.random.default_rng(0)
    m = child_sum()
    split = SpecializeLeaves().apply(m)
    nodes, params = random_nodes(rng, 15), random_params(m, rng)
    one, two = linearize(m, nodes), linearize(split, nodes)
    before, after = run(m, params, one)["h"], run(split, params, two)["h"]
    np.testing.assert_allclose(after[two.arrays["order"]], before[one.arrays["order"]], atol=1e-14)


@pytest.mark.parametrize("model", [tree_lstm(), tree_fc()], ids=lambda m: m.name)
def test_told_already(model: ir.Model) -> None:
    assert SpecializeLeaves().apply(model) == model


def guarded(*facts: ir.Fact, slots: tuple[str, ...] = ()) -> ir.Model:
    m = child_sum()
    return replace(m, slots=slots, kinds=(replace(m.kinds[0], guard=facts),))


def test_other_facts() -> None:
    step = SpecializeLeaves()
    for fact in (ir.Fact(ir.Length("children"), 2), ir.Fact(ir.Length("children"), 0)):
        assert step.apply(guarded(fact)) == guarded(fact)
    present = guarded(ir.Fact(ir.IsNone("left"), False), slots=("left",))
    assert step.apply(present) == present
    tagged = step.apply(guarded(ir.Fact(ir.Equals("op", "And"), True)))
    assert [k.guard for k in tagged.kinds] == [
        (ir.Fact(ir.Equals("op", "And"), True), ir.Fact(ir.IsLeaf(), True)),
        (ir.Fact(ir.Equals("op", "And"), True), ir.Fact(ir.IsLeaf(), False)),
    ]
    verify(tagged)


def test_a_kind_that_reads_a_slot_has_children() -> None:
    m = guarded(slots=("left",))
    kind = m.kinds[0]
    left = ir.Let("left", ir.State("h", (ir.Slot("left"),)), m.states[0].type)
    with_left = replace(m, kinds=(replace(kind, lets=(*kind.lets, left), results=("left",)),))
    assert SpecializeLeaves().apply(with_left) == with_left


def test_names_stay_clear() -> None:
    m = child_sum()
    kind = m.kinds[0]
    taken = replace(kind, name="any_leaf", guard=(ir.Fact(ir.Equals("op", 1), True), ir.Fact(ir.IsLeaf(), True)))
    m = replace(m, kinds=(taken, replace(kind, guard=(ir.Fact(ir.Equals("op", 1), False),))))
    assert [k.name for k in SpecializeLeaves().apply(m).kinds] == ["any_leaf", "any_leaf_", "any_inner"]
