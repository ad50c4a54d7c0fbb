"""What depends on parameters only leaves the recursion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ra_models import child_sum, f32, linearize, random_nodes, random_params, tree_lstm, with_kind

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.interp import run
from cortex.ra.show import show
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify
from cortex.recursion.hoist import Hoist


def test_bias_sum_is_derived(golden: Callable[[str, str], None]) -> None:
    m = Hoist().apply(child_sum())
    verify(m)
    golden("recursion/hoist_child_sum", show(m))
    assert [d.name for d in m.derived] == ["derived_0"]


def test_meaning_stays() -> None:
    rng = np.random.default_rng(0)
    m = child_sum()
    form, params = linearize(m, random_nodes(rng, 15)), random_params(m, rng)
    np.testing.assert_allclose(run(Hoist().apply(m), params, form)["h"], run(m, params, form)["h"], atol=1e-14)


def test_slices_of_matrices_stay_and_slices_of_vectors_go() -> None:
    m = Hoist().apply(simplify(tree_lstm()))
    verify(m)
    assert {d.lets[0].op for d in m.derived} == {ir.Param("b")}
    sliced = {let.op.ranges for kind in m.kinds for let in kind.lets if isinstance(let.op, ir.Slice)}
    assert sliced and all(len(ranges) == 2 for ranges in sliced)


def test_kinds_share_and_names_stay_clear() -> None:
    m = ir.Model(
        "shared",
        (ir.ParamDecl("b", f32(3)), ir.ParamDecl("derived_0", f32(3))),
        (ir.FieldDecl("x", f32(3)),),
        (),
        ("children",),
        (ir.StateDecl("h", f32(3)),),
        (),
    )

    def body(b: Builder) -> list[str]:
        bias = b.add(ir.Binary("add", b.add(ir.Param("b")), b.add(ir.Param("derived_0"))))
        return [b.add(ir.Binary("mul", b.add(ir.Field("x")), bias))]

    def other(b: Builder) -> list[str]:
        x = b.add(ir.Unary("tanh", b.add(ir.Field("x"))))
        bias = b.add(ir.Binary("add", b.add(ir.Param("b")), b.add(ir.Param("derived_0"))))
        return [b.add(ir.Binary("mul", x, bias))]

    m = with_kind(m, "leaf", (ir.Fact(ir.IsLeaf(), True),), body)
    m = with_kind(m, "inner", (ir.Fact(ir.IsLeaf(), False),), other)
    hoisted = Hoist().apply(m)
    verify(hoisted)
    assert [p.name for p in hoisted.params] == ["b", "derived_0", "derived_1"]
    assert len(hoisted.derived) == 1
    assert Hoist().apply(hoisted) is hoisted


def test_a_result_may_be_derived() -> None:
    m = ir.Model("constant", (ir.ParamDecl("b", f32(3)),), (), (), ("children",), (ir.StateDecl("h", f32(3)),), ())
    m = Hoist().apply(with_kind(m, "any", (), lambda b: [b.add(ir.Unary("tanh", b.add(ir.Param("b"))))]))
    verify(m)
    (let,) = m.kinds[0].lets
    assert let.op == ir.Param("derived_0")


def test_a_step_is_a_value() -> None:
    assert Hoist() == Hoist()
    assert hash(Hoist()) == hash(Hoist())
    assert repr(Hoist()) == "Hoist()"


def compared(chosen: Callable[[Builder], str]) -> ir.Model:
    """where(a + b < b, chosen, b), hoisted."""
    m = ir.Model(
        "compared",
        params=(ir.ParamDecl("a", f32(3)), ir.ParamDecl("b", f32(3))),
        fields=(ir.FieldDecl("x", f32(3)),),
        slots=(),
        lists=(),
        states=(ir.StateDecl("h", f32(3)),),
        kinds=(),
    )

    def body(b: Builder) -> list[str]:
        x, y = b.add(ir.Param("a")), b.add(ir.Param("b"))
        less = b.add(ir.Binary("lt", b.add(ir.Binary("add", x, y)), y))
        return [b.add(ir.Where(less, chosen(b), y))]

    hoisted = Hoist().apply(with_kind(m, "all", (), body))
    verify(hoisted)
    return hoisted


def test_comparisons_of_parameters_stay_where_nodes_need_them() -> None:
    m = compared(lambda b: b.add(ir.Field("x")))
    assert [p.type.dtype for p in m.params] == ["f32"] * 3  # a, b, and their sum
    assert any(let.type.dtype == "bool" for let in m.kinds[0].lets)


def test_what_comparisons_of_parameters_choose_is_derived() -> None:
    m = compared(lambda b: b.add(ir.Param("a")))
    assert [let.op for let in m.kinds[0].lets] == [ir.Param("derived_0")]
    (derived,) = m.derived
    assert isinstance(derived.lets[-1].op, ir.Where)
    params = {"a": np.array([-1.0, 0.0, 1.0]), "b": np.full(3, 2.0)}
    form = linearize(m, random_nodes(np.random.default_rng(0), 1))
    np.testing.assert_array_equal(run(m, params, form)["h"][0], [-1.0, 2.0, 2.0])
