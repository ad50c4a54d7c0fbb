"""Broken models are refused, with the model's text attached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from ra_models import child_sum, f32, tree_fc, tree_lstm

from cortex.errors import InternalError
from cortex.ra import ir
from cortex.ra.verify import verify

H = 4
LEAF, INNER = tree_lstm().kinds


def with_inner(edit: Callable[[ir.Kind], ir.Kind]) -> ir.Model:
    return replace(tree_lstm(), kinds=(LEAF, edit(INNER)))


def change(name: str, **changes: object) -> ir.Model:
    """TreeLSTM with one let of its inner kind changed."""
    lets = tuple(replace(let, **changes) if let.name == name else let for let in INNER.lets)  # type: ignore[arg-type]
    return with_inner(lambda k: replace(k, lets=lets))


def added(op: ir.Op, t: ir.TensorType, over: str | None = None) -> ir.Model:
    """TreeLSTM with one more let in its inner kind."""
    return with_inner(lambda k: replace(k, lets=(*k.lets, ir.Let("extra", op, t, over))))


def guarded(*guards: tuple[ir.Fact, ...]) -> ir.Model:
    kinds = [replace(LEAF, name=f"k{i}", guard=g) for i, g in enumerate(guards)]
    return replace(tree_lstm(), kinds=tuple(kinds))


@pytest.mark.parametrize("model", [tree_lstm(), tree_fc(), child_sum()], ids=lambda m: m.name)
def test_good_models_pass(model: ir.Model) -> None:
    verify(model)


LEAF_FACT = ir.Fact(ir.IsLeaf(), True)
EACH = (ir.Each("children"),)

BROKEN = {
    "defined after use": (
        with_inner(lambda k: replace(k, lets=k.lets[::-1])),
        "there is no let",
    ),
    "defined twice": (with_inner(lambda k: replace(k, lets=(*k.lets, k.lets[0]))), "'t0' is defined twice"),
    "wrong type": (change("s", type=f32(H + 1)), "let 's' says"),
    "per edge read per node": (added(ir.Unary("tanh", "f"), f32(H)), "reads a value per edge of 'children'"),
    "Each per node": (added(ir.State("h", EACH), f32(H)), "reads a value per edge of 'children'"),
    "reduction of a node's value": (
        added(ir.OverChildren("add", "s", "children"), f32(H)),
        "reduces 's' over 'children', but 's' is per node",
    ),
    "reduction per edge": (added(ir.OverChildren("add", "f", "children"), f32(H), "children"), "is itself per edge"),
    "per edge of nothing": (added(ir.Fill(0.0, ()), f32(), "kids"), "which is no list relation"),
    "Each after another hop": (
        added(ir.State("h", (ir.Each("children"), ir.Each("children"))), f32(H), "children"),
        "only the first may be an Each",
    ),
    "no such slot": (added(ir.State("h", (ir.Slot("left"),)), f32(H)), "names no such relation"),
    "item that may not exist": (added(ir.State("h", (ir.Item("children", 0),)), f32(H)), "nothing in the guard"),
    "own state": (added(ir.State("h", ()), f32(H)), "the path must not be empty"),
    "float index": (added(ir.Lookup("s", "s"), f32()), "not an i64 scalar"),
    "no such parameter": (added(ir.Param("V"), f32(H)), "there is no parameter 'V'"),
    "shapes that do not broadcast": (added(ir.Binary("add", "s", "t4"), f32(H)), "do not broadcast"),
    "repeated letter": (added(ir.Contract("ii,i->i", "t1", "s"), f32(H)), "is both 12 and 4"),
    "slice beyond the end": (added(ir.Slice("s", ((0, 9, 1),)), f32(9)), "range 0:9:1 of an axis of 4"),
    "result per edge": (
        with_inner(lambda k: replace(k, results=("f", "c"))),
        "result 'f' is per edge of 'children'",
    ),
    "result of another type": (with_inner(lambda k: replace(k, results=("t4", "c"))), "the result 't4' is"),
    "too few results": (with_inner(lambda k: replace(k, results=("h",))), "has 1 results for 2 states"),
    "result undefined": (with_inner(lambda k: replace(k, results=("h", "q"))), "'q' is not defined"),
    "same guard": (guarded((LEAF_FACT,), (LEAF_FACT,)), "fit the same nodes"),
    "guard within a guard": (guarded((), (LEAF_FACT,)), "fit the same nodes"),
    "different questions": (
        guarded((LEAF_FACT,), (ir.Fact(ir.Length("children"), 2),)),
        "ask different questions",
    ),
    "guard over no relation": (guarded((ir.Fact(ir.IsLeaf((ir.Slot("left"),)), True),)), "names no such relation"),
    "derived from nodes": (
        replace(
            tree_lstm(),
            derived=(ir.Derived("b", (ir.Let("a", ir.Arity("children"), f32()),), "a"),),
        ),
        "reads from nodes",
    ),
    "derived from itself": (
        replace(tree_lstm(), derived=(ir.Derived("bf", (ir.Let("a", ir.Param("bf"), f32(H)),), "a"),)),
        "which is derived later",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_models_do_not(case: str) -> None:
    model, message = BROKEN[case]
    with pytest.raises(InternalError) as caught:
        verify(model)
    assert message in str(caught.value)
    assert "model tree_lstm" in caught.value.__notes__[0]


def test_an_item_exists_by_a_length() -> None:
    lets = (ir.Let("h", ir.State("h", (ir.Item("children", 1),)), f32(H)),)
    facts = (ir.Fact(ir.IsLeaf(), False), ir.Fact(ir.Length("children"), 2))
    kind = ir.Kind("two", facts, lets, ("h", "h"))
    verify(replace(tree_lstm(), kinds=(LEAF, kind)))


def test_value_guards_tell_true_from_one() -> None:
    verify(guarded((ir.Fact(ir.Value("flag"), True),), (ir.Fact(ir.Value("flag"), 1),)))
