"""The rules of simplification about constants, views and slices: where each fires and where it must not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from ra_simplified import Simplified, h_k, x

from cortex.ra.build import Builder
from cortex.ra.ir import (
    Binary,
    Broadcast,
    Cast,
    Concat,
    Contract,
    Field,
    Fill,
    Lookup,
    OverChildren,
    Param,
    Reduce,
    Reshape,
    Slice,
    Transpose,
    Unary,
    Where,
)


def test_equal_values_are_one_let() -> None:
    s = Simplified(lambda b: b.add(Binary("sub", b.add(Unary("tanh", x(b))), b.add(Unary("tanh", x(b))))))
    assert s.count(Unary) == 1
    assert s.count(Field) == 1


def test_dead_lets_go() -> None:
    def body(b: Builder) -> str:
        b.add(Unary("exp", x(b)))
        return b.add(Unary("tanh", x(b)))

    assert [type(op) for op in Simplified(body).ops] == [Field, Unary]


def test_constants_fold() -> None:
    def body(b: Builder) -> str:
        two = b.add(Fill(2.0, (6, 2)))
        part = b.add(Slice(b.add(Transpose(two, (1, 0))), ((0, 1, 1), (0, 4, 1))))
        return b.add(Reduce("add", b.add(Binary("mul", b.add(Unary("neg", part)), part)), (0, 1)))

    assert Simplified(body).ops == [Fill(-16.0, ())]


def test_constants_that_are_not_finite_stay() -> None:
    s = Simplified(lambda b: b.add(Unary("log", b.add(Fill(0.0, ())))))
    assert s.count(Unary) == 1


@pytest.mark.parametrize(
    ("fn", "value", "first"),
    [("add", -0.0, True), ("add", -0.0, False), ("sub", 0.0, False), ("mul", 1.0, True), ("div", 1.0, False)],
)
def test_neutral_constants_go(fn: str, value: float, first: bool) -> None:
    def body(b: Builder) -> str:
        c = b.add(Fill(value, ()))
        return b.add(Binary(fn, c, x(b)) if first else Binary(fn, x(b), c))  # type: ignore[arg-type]

    assert Simplified(body).ops == [Field("x")]


@pytest.mark.parametrize(
    ("fn", "value", "first"),
    [
        ("add", 1.0, True), ("div", 1.0, True), ("mul", 2.0, False), ("div", 0.0, False), ("add", 0.0, True),
        ("add", 0.0, False), ("sub", -0.0, False), ("sub", 0.0, True), ("mul", 0.0, True), ("mul", 0.0, False),
    ],
)  # fmt: skip
def test_other_constants_stay(fn: str, value: float, first: bool) -> None:
    def body(b: Builder) -> str:
        c = b.add(Fill(value, ()))
        return b.add(Binary(fn, c, x(b)) if first else Binary(fn, x(b), c))  # type: ignore[arg-type]

    assert Simplified(body).count(Binary) == 1


def test_a_neutral_constant_that_enlarges_leaves_a_broadcast() -> None:
    s = Simplified(lambda b: b.add(Binary("sub", x(b), b.add(Fill(0.0, (3, 4))))))
    assert isinstance(s.result(), Broadcast)


def test_negative_zero_minus_x_is_negation_and_two_negations_are_none() -> None:
    def body(b: Builder) -> tuple[str, str]:
        once = b.add(Binary("sub", b.add(Fill(-0.0, ())), x(b)))
        return once, b.add(Unary("neg", once))

    s = Simplified(body)
    assert s.result(0) == Unary("neg", s.kind.results[2])
    assert s.result(1) == Field("x")


def test_where_of_equals() -> None:
    def body(b: Builder) -> str:
        some = b.add(Binary("lt", x(b), b.add(Fill(0.0, ()))))
        return b.add(Where(some, x(b), x(b)))

    assert Simplified(body).ops == [Field("x")]


@pytest.mark.parametrize("never_negative_zero", [Unary("sigmoid", "x"), Unary("exp", "x"), Reduce("add", "y", (0,))])
def test_zero_is_neutral_for_what_is_never_negative_zero(never_negative_zero: Unary | Reduce) -> None:
    def body(b: Builder) -> str:
        of = b.add(Field("y")) if isinstance(never_negative_zero, Reduce) else x(b)
        return b.add(Binary("add", b.add(Fill(0.0, ())), b.add(replace(never_negative_zero, x=of))))

    assert Simplified(body).count(Binary) == 0


def test_zeros_absorb_nothing() -> None:
    """A weight may be infinite, a gate NaN."""
    zero = Fill(0.0, (4,))
    products: list[Callable[[Builder], str]] = [
        lambda b: b.add(Binary("mul", b.add(zero), x(b))),
        lambda b: b.add(Binary("mul", b.add(Fill(0.0, (6,))), b.add(Param("b")))),
        lambda b: b.add(Binary("mul", b.add(zero), b.add(Unary("sigmoid", x(b))))),
        lambda b: b.add(Contract("k,k->", x(b), b.add(zero))),
        lambda b: b.add(Contract("jk,k->j", b.add(Param("W")), b.add(zero))),
        lambda b: b.add(Binary("mul", b.add(zero), b.add(Fill(math.inf, (4,))))),
    ]
    for product in products:
        last = Simplified(product).ops[-1]
        assert isinstance(last, Binary | Contract)
        assert not isinstance(last, Binary) or last.fn == "mul"


def test_zeros_of_both_signs_are_different_constants() -> None:
    def both(b: Builder) -> str:
        zero = b.add(Fill(0.0, (3,)))
        return b.add(Concat((zero, b.add(Unary("neg", zero))), 0))

    s = Simplified(both)
    assert [math.copysign(1.0, op.value) for op in s.ops if isinstance(op, Fill)] == [1.0, -1.0]


def test_a_computed_zero_absorbs_nothing() -> None:
    def body(b: Builder) -> str:
        zero = b.add(Binary("sub", x(b), x(b)))
        return b.add(Contract("jk,k->j", b.add(Param("W")), zero))

    assert Simplified(body).count(Contract) == 1


def test_constant_operands_become_scalars_unless_they_enlarge() -> None:
    small = Simplified(lambda b: b.add(Binary("mul", x(b), b.add(Fill(2.0, (4,))))))
    large = Simplified(lambda b: b.add(Binary("mul", x(b), b.add(Fill(2.0, (3, 4))))))
    assert Fill(2.0, ()) in small.ops
    assert Fill(2.0, (3, 4)) in large.ops


def test_identity_views_go() -> None:
    def body(b: Builder) -> str:
        v = b.add(Slice(x(b), ((0, 4, 1),)))
        v = b.add(Reshape(v, (4,)))
        v = b.add(Transpose(v, (0,)))
        v = b.add(Cast(b.add(Broadcast(v, (4,))), "f32"))
        return b.add(Concat((v,), 0))

    assert Simplified(body).ops == [Field("x")]


def test_views_of_views_are_one() -> None:
    def body(b: Builder) -> tuple[str, ...]:
        y = b.add(Field("y"))
        sliced = b.add(Slice(b.add(Slice(y, ((1, 6, 2),))), ((1, 3, 1),)))
        w = b.add(Param("T"))
        turned = b.add(Transpose(b.add(Transpose(w, (1, 2, 0))), (1, 2, 0)))
        shaped = b.add(Reshape(b.add(Reshape(y, (2, 3))), (3, 2)))
        spread = b.add(Broadcast(b.add(Broadcast(y, (1, 6))), (2, 6)))
        return sliced, turned, shaped, spread

    s = Simplified(body)
    y = next(n for n, let in s.lets.items() if let.op == Field("y"))
    assert s.result(0) == Slice(y, ((3, 6, 2),))
    assert s.result(1) == Transpose(next(n for n, let in s.lets.items() if let.op == Param("T")), (2, 0, 1))
    assert s.result(2) == Reshape(y, (3, 2))
    assert s.result(3) == Broadcast(y, (2, 6))


def test_slices_have_one_form() -> None:
    s = Simplified(
        lambda b: (b.add(Slice(b.add(Field("y")), ((0, 6, 4),))), b.add(Slice(b.add(Field("y")), ((0, 5, 4),))))
    )
    assert s.kind.results[1] == s.kind.results[2]


def test_pointwise_ops_broadcast_by_themselves_unless_that_makes_the_shape() -> None:
    def spread(b: Builder, other: str) -> str:
        return b.add(Binary("add", b.add(Broadcast(b.add(Field("y")), (3, 6))), other))

    same = Simplified(
        lambda b: spread(
            b, b.add(Reshape(b.add(Contract("i,j->ij", b.add(Fill(1.0, (3,))), b.add(Param("b")))), (3, 6)))
        )
    )
    needed = Simplified(lambda b: spread(b, b.add(Param("b"))))
    assert same.count(Broadcast) == 0
    assert needed.count(Broadcast) == 1


def gates(b: Builder, *ranges: tuple[int, int]) -> list[str]:
    t = b.add(Contract("jk,k->j", b.add(Param("W")), x(b)))
    t = b.add(Unary("tanh", b.add(Binary("add", t, b.add(Param("b"))))), "gates")
    return [b.add(Slice(t, ((lo, hi, 1),))) for lo, hi in ranges]


def test_gates_become_separate_products() -> None:
    s = Simplified(lambda b: tuple(gates(b, (0, 2), (2, 4), (4, 6))))
    products = [op for op in s.ops if isinstance(op, Contract)]
    assert len(products) == 3
    for i, product in enumerate(products):
        weights = s.op(product.x)
        assert isinstance(weights, Slice)
        assert weights.ranges == ((2 * i, 2 * i + 2, 1), (0, 4, 1))
        assert s.op(weights.x) == Param("W")
    assert "gates" not in s.lets


def test_overlapping_slices_stay() -> None:
    s = Simplified(lambda b: tuple(gates(b, (0, 4), (2, 6))))
    assert s.count(Contract) == 1
    assert "gates" in s.lets


def test_slices_stay_beside_another_use() -> None:
    def used(b: Builder) -> tuple[str, ...]:
        i, o = gates(b, (0, 3), (3, 6))
        return b.add(Binary("mul", i, o)), b.add(Unary("exp", "gates"))

    def returned(b: Builder) -> tuple[str, ...]:
        return (*gates(b, (0, 3), (3, 6)), "gates")

    for body in (used, returned):
        s = Simplified(body)
        assert s.count(Contract) == 1
        assert "gates" in s.lets


def test_one_slice_leaves_only_what_it_needs() -> None:
    s = Simplified(lambda b: tuple(gates(b, (1, 3))))
    (product,) = [op for op in s.ops if isinstance(op, Contract)]
    assert s.op(product.x).ranges == ((1, 3, 1), (0, 4, 1))  # type: ignore[union-attr]


def test_slices_sink_through_reshapes_lookups_and_reductions() -> None:
    def body(b: Builder) -> tuple[str, ...]:
        split = b.add(Reshape(b.add(Unary("tanh", b.add(Field("y")))), (3, 2)))
        row = b.add(Reshape(b.add(Slice(split, ((1, 2, 1), (0, 2, 1)))), (2,)))
        word = b.add(Slice(b.add(Lookup(b.add(Param("W")), b.add(Field("word")))), ((2, 4, 1),)))
        total = b.add(Slice(b.add(OverChildren("max", b.add(Unary("exp", h_k(b))), "kids")), ((0, 2, 1),)))
        summed = b.add(Slice(b.add(Reduce("add", b.add(Param("T")), (1,))), ((0, 4, 1), (0, 2, 1))))
        return row, word, total, summed

    s = Simplified(body)
    assert s.result(0) == Unary(
        "tanh", next(n for n, let in s.lets.items() if let.op == Slice(s.let(Field("y")), ((2, 4, 1),)))
    )
    assert isinstance(s.result(1), Lookup)
    assert isinstance(s.result(2), OverChildren)
    assert isinstance(s.result(3), Reduce)


def test_a_slice_that_no_box_matches_stays_above_the_reshape() -> None:
    def body(b: Builder) -> str:
        return b.add(Slice(b.add(Reshape(b.add(Field("y")), (3, 2))), ((0, 3, 1), (0, 1, 1))))

    s = Simplified(body)
    assert isinstance(s.result(), Slice)
    assert s.count(Reshape) == 1


def test_a_slice_of_a_concat_takes_the_parts_it_needs() -> None:
    def body(b: Builder) -> tuple[str, ...]:
        both = b.add(Concat((x(b), b.add(Field("y"))), 0))
        return b.add(Slice(both, ((4, 10, 1),))), b.add(Slice(both, ((3, 10, 3),)))

    s = Simplified(body)
    assert s.result(0) == Field("y")
    last = s.result(1)
    assert isinstance(last, Concat)
    assert [s.op(part) for part in last.xs] == [
        Slice(s.let(Field("x")), ((3, 4, 1),)),
        Slice(s.let(Field("y")), ((2, 6, 3),)),
    ]


def test_slices_sink_through_long_chains() -> None:
    def body(b: Builder) -> tuple[str, ...]:
        t = b.add(Contract("jk,k->j", b.add(Param("W")), x(b)))
        for _ in range(120):
            t = b.add(Unary("tanh", t))
        return tuple(b.add(Slice(t, ((lo, lo + 3, 1),))) for lo in (0, 3))

    assert Simplified(body).count(Contract) == 2
