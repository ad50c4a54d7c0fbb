"""The printed form of models."""

from __future__ import annotations

from collections.abc import Callable

from ra_models import child_sum, f32, tree_fc, tree_lstm, with_kind

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.show import show, show_guard
from cortex.ra.simplify import simplify
from cortex.recursion.hoist import Hoist


def test_models(golden: Callable[[str, str], None]) -> None:
    golden("ra/tree_lstm", show(tree_lstm(h=256, words=1000)))
    golden("ra/tree_lstm_simplified", show(simplify(tree_lstm(h=256, words=1000))))
    golden("ra/tree_fc_simplified", show(simplify(tree_fc(h=256, words=1000))))
    golden("ra/child_sum_hoisted", show(Hoist().apply(child_sum())))


def test_every_op(golden: Callable[[str, str], None]) -> None:
    m = ir.Model(
        "ops",
        (ir.ParamDecl("A", f32(2, 3)), ir.ParamDecl("v", f32(3))),
        (ir.FieldDecl("word", ir.TensorType((), "i64"), 2), ir.FieldDecl("x", f32(3))),
        ("left",),
        ("kids",),
        (ir.StateDecl("h", f32(3)),),
        (),
    )

    def body(b: Builder) -> list[str]:
        a, v, x = b.add(ir.Param("A")), b.add(ir.Param("v")), b.add(ir.Field("x"))
        left, item = b.add(ir.State("h", (ir.Slot("left"),))), b.add(ir.State("h", (ir.Item("kids", 1),)))
        each = b.add(ir.State("h", (ir.Each("kids"),)))
        b.add(ir.Field("x", (ir.Slot("left"),)))
        b.add(ir.Arity("kids"))
        b.add(ir.Where(b.add(ir.Binary("le", left, b.add(ir.Fill(0.5, ())))), item, x))
        b.add(ir.Cast(b.add(ir.Field("word")), "f32"))
        b.add(ir.Unary("neg", x))
        b.add(ir.Binary("max", x, v))
        b.add(ir.Contract("ik,k->i", a, x))
        b.add(ir.Contract("k,ik->i", x, a))
        b.add(ir.Contract("k,k->", x, v))
        b.add(ir.Contract("i,j->ij", x, v))
        b.add(ir.Reduce("max", a, (0, 1)))
        largest = b.add(ir.OverChildren("max", each, "kids"))
        both = b.add(ir.Concat((largest, left), 0))
        b.add(ir.Slice(both, ((0, 6, 2),)))
        b.add(ir.Slice(b.add(ir.Transpose(a, (1, 0))), ((1, 3, 1), (0, 2, 1))), "view")
        b.add(ir.Reshape(both, (1, 6)))
        b.add(ir.Broadcast(b.add(ir.Fill(1.0, (3,))), (2, 3)))
        b.add(ir.Lookup(a, b.add(ir.Field("word", (ir.Slot("left"),)))))
        b.add(ir.Binary("mul", "view", b.add(ir.Fill(2.0, ()))))
        return [largest]

    guard = (
        ir.Fact(ir.IsLeaf(), False),
        ir.Fact(ir.IsNone("left"), False),
        ir.Fact(ir.Length("kids"), 2),
        ir.Fact(ir.Equals("op", "Join"), False),
        ir.Fact(ir.Value("size", (ir.Slot("left"),)), 3),
    )
    golden("ra/every_op", show(with_kind(m, "all", guard, body)))


def test_guards_in_words() -> None:
    assert show_guard(()) == "any node"
    assert show_guard((ir.Fact(ir.IsLeaf((ir.Slot("left"),)), True),)) == "node.left is a leaf"
    assert show_guard((ir.Fact(ir.IsNone("left"), True), ir.Fact(ir.Equals("op", "And"), True))) == (
        "node.left is None, node.op == 'And'"
    )
