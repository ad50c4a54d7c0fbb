"""Each rule of simplification where it fires and where it must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from ra_models import f32, with_kind

from cortex.ra import ir
from cortex.ra.build import Builder
from cortex.ra.ir import (
    Arity,
    Binary,
    Broadcast,
    Cast,
    Concat,
    Contract,
    Each,
    Fact,
    Field,
    Fill,
    IsLeaf,
    IsNone,
    Length,
    Lookup,
    OverChildren,
    Param,
    Reduce,
    Reshape,
    Slice,
    Slot,
    State,
    Transpose,
    Unary,
    Where,
)
from cortex.ra.simplify import simplify
from cortex.ra.verify import verify

EACH = (Each("kids"),)
Body = Callable[[Builder], "str | tuple[str, ...]"]

SKELETON = ir.Model(
    "rules",
    (
        ir.ParamDecl("W", f32(6, 4)),
        ir.ParamDecl("V", f32(4, 8)),
        ir.ParamDecl("T", f32(4, 8, 8)),
        ir.ParamDecl("b", f32(6)),
        ir.ParamDecl("a", f32(4)),
    ),
    (ir.FieldDecl("x", f32(4)), ir.FieldDecl("y", f32(6)), ir.FieldDecl("word", ir.TensorType((), "i64"), 6)),
    ("left", "right"),
    ("kids",),
    (ir.StateDecl("h", f32(4)),),
    (),
)


def model(body: Body, *guard: Fact) -> ir.Model:
    """A model of one kind, whose results are whatever `body` returns."""

    def results(b: Builder) -> tuple[str, ...]:
        made = body(b)
        return (made,) if isinstance(made, str) else made

    m = with_kind(SKELETON, "any", guard, results)
    types = {let.name: let.type for let in m.kinds[0].lets}
    states = [ir.StateDecl(f"s{i}", types[r]) for i, r in enumerate(m.kinds[0].results)]
    return replace(m, states=(SKELETON.states[0], *states), kinds=(_with_h(m.kinds[0]),))


def _with_h(kind: ir.Kind) -> ir.Kind:
    h = ir.Let("h", Fill(0.0, (4,)), f32(4))
    return replace(kind, lets=(h, *kind.lets), results=("h", *kind.results))


class Simplified:
    """The graph after simplification, as expressions: ops whose operands are shown in place."""

    def __init__(self, body: Body, *guard: Fact) -> None:
        m = model(body, *guard)
        verify(m)
        simple = simplify(m)
        verify(simple)
        self.kind = simple.kinds[0]
        self.lets = {let.name: let for let in self.kind.lets}
        self.ops = [let.op for let in self.kind.lets[1:]]

    def result(self, i: int = 0) -> ir.Op:
        return self.lets[self.kind.results[i + 1]].op

    def op(self, name: str) -> ir.Op:
        return self.lets[name].op

    def count(self, cls: type) -> int:
        return sum(isinstance(op, cls) for op in self.ops)


def x(b: Builder) -> str:
    return b.add(Field("x"))


def h_k(b: Builder) -> str:
    return b.add(State("h", EACH))


# Sharing and dead code


def test_equal_values_are_one_let() -> None:
    s = Simplified(lambda b: b.add(Binary("sub", b.add(Unary("tanh", x(b))), b.add(Unary("tanh", x(b))))))
    assert s.count(Unary) == 1
    assert s.count(Field) == 1


def test_dead_lets_go() -> None:
    def body(b: Builder) -> str:
        b.add(Unary("exp", x(b)))
        return b.add(Unary("tanh", x(b)))

    assert [type(op) for op in Simplified(body).ops] == [Field, Unary]


# Constants


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
    [("add", 0.0, True), ("add", 0.0, False), ("sub", 0.0, False), ("mul", 1.0, True), ("div", 1.0, False)],
)
def test_neutral_constants_go(fn: str, value: float, first: bool) -> None:
    def body(b: Builder) -> str:
        c = b.add(Fill(value, ()))
        return b.add(Binary(fn, c, x(b)) if first else Binary(fn, x(b), c))  # type: ignore[arg-type]

    assert Simplified(body).ops == [Field("x")]


@pytest.mark.parametrize(
    ("fn", "value", "first"), [("add", 1.0, True), ("div", 1.0, True), ("mul", 2.0, False), ("div", 0.0, False)]
)
def test_other_constants_stay(fn: str, value: float, first: bool) -> None:
    def body(b: Builder) -> str:
        c = b.add(Fill(value, ()))
        return b.add(Binary(fn, c, x(b)) if first else Binary(fn, x(b), c))  # type: ignore[arg-type]

    assert Simplified(body).count(Binary) == 1


def test_a_neutral_constant_that_enlarges_leaves_a_broadcast() -> None:
    s = Simplified(lambda b: b.add(Binary("add", x(b), b.add(Fill(0.0, (3, 4))))))
    assert isinstance(s.result(), Broadcast)


def test_zero_minus_x_is_negation_and_two_negations_are_none() -> None:
    def body(b: Builder) -> tuple[str, str]:
        once = b.add(Binary("sub", b.add(Fill(0.0, ())), x(b)))
        return once, b.add(Unary("neg", once))

    s = Simplified(body)
    assert s.result(0) == Unary("neg", s.kind.results[2])
    assert s.result(1) == Field("x")


def test_where_of_equals() -> None:
    def body(b: Builder) -> str:
        some = b.add(Binary("lt", x(b), b.add(Fill(0.0, ()))))
        return b.add(Where(some, x(b), x(b)))

    assert Simplified(body).ops == [Field("x")]


def test_zeros_absorb_products_and_contractions() -> None:
    def body(b: Builder) -> str:
        absent = b.add(Fill(0.0, (4,)))
        t = b.add(Contract("jk,k->j", b.add(Param("W")), b.add(Binary("mul", absent, x(b)))))
        return b.add(Binary("add", t, b.add(Param("b"))))

    assert Simplified(body).ops == [Param("b")]


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


# Views


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


# Slices sink


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
        "tanh", next(n for n, let in s.lets.items() if let.op == Slice(_let(s, Field("y")), ((2, 4, 1),)))
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
        Slice(_let(s, Field("x")), ((3, 4, 1),)),
        Slice(_let(s, Field("y")), ((2, 6, 3),)),
    ]


def _let(s: Simplified, op: ir.Op) -> str:
    return next(n for n, let in s.lets.items() if let.op == op)


# Contractions


def test_the_parameter_comes_first_under_standard_letters() -> None:
    s = Simplified(lambda b: b.add(Contract("n,mn->m", x(b), b.add(Param("W")))))
    assert s.result() == Contract("ik,k->i", _let(s, Param("W")), _let(s, Field("x")))


def test_two_node_values_keep_their_order() -> None:
    s = Simplified(lambda b: b.add(Contract("i,j->ij", b.add(Field("y")), x(b))))
    assert s.result() == Contract("i,j->ij", _let(s, Field("y")), _let(s, Field("x")))


def test_contractions_without_sum_are_products() -> None:
    s = Simplified(lambda b: b.add(Contract("j,j->j", x(b), b.add(Param("a")))))
    assert isinstance(s.result(), Binary)
    outer = Simplified(lambda b: b.add(Contract("i,j->ij", x(b), b.add(Param("a")))))
    assert isinstance(outer.result(), Contract)


def test_transposes_become_letters() -> None:
    def body(b: Builder) -> str:
        return b.add(Contract("jk,k->j", b.add(Transpose(b.add(Param("W")), (1, 0))), b.add(Field("y"))))

    s = Simplified(body)
    assert s.result() == Contract("ki,k->i", _let(s, Param("W")), _let(s, Field("y")))


def test_a_transposed_result_does_unless_it_is_needed_as_it_was() -> None:
    def product(b: Builder) -> str:
        return b.add(Contract("i,j->ij", x(b), b.add(Field("y"))))

    once = Simplified(lambda b: b.add(Transpose(product(b), (1, 0))))
    assert once.result() == Contract("j,i->ij", _let(once, Field("x")), _let(once, Field("y")))

    def both(b: Builder) -> tuple[str, str]:
        p = product(b)
        return p, b.add(Transpose(p, (1, 0)))

    assert Simplified(both).count(Contract) == 1


def test_columns_are_read_as_vectors() -> None:
    def body(b: Builder) -> str:
        column = b.add(Reshape(x(b), (4, 1)))
        return b.add(Contract("ik,kj->ij", b.add(Param("W")), column))

    s = Simplified(body)
    assert isinstance(s.result(), Reshape)
    assert Contract("ik,k->i", _let(s, Param("W")), _let(s, Field("x"))) in s.ops


def test_other_reshapes_stay_below_contractions() -> None:
    def body(b: Builder) -> str:
        return b.add(Contract("ij,j->i", b.add(Reshape(b.add(Field("y")), (3, 2))), b.add(Fill(3.0, (2,)))))

    assert Simplified(body).count(Reshape) == 1


def children(b: Builder) -> str:
    return b.add(Concat((b.add(State("h", (Slot("left"),))), b.add(State("h", (Slot("right"),)))), 0))


def test_a_product_with_a_concat_is_a_sum_of_products() -> None:
    s = Simplified(lambda b: b.add(Contract("jk,k->j", b.add(Param("V")), children(b))))
    products = [op for op in s.ops if isinstance(op, Contract)]
    assert [s.op(p.x).ranges for p in products] == [  # type: ignore[union-attr]
        ((0, 4, 1), (0, 4, 1)),
        ((0, 4, 1), (4, 8, 1)),
    ]
    assert s.count(Concat) == 0


def test_a_concat_along_a_kept_letter_is_a_concat_of_products() -> None:
    s = Simplified(lambda b: b.add(Contract("i,j->ij", children(b), b.add(Param("a")))))
    result = s.result()
    assert isinstance(result, Concat)
    assert (len(result.xs), result.axis) == (2, 0)


def test_an_absent_child_drops_out_of_a_concat() -> None:
    def body(b: Builder) -> str:
        both = b.add(Concat((b.add(State("h", (Slot("left"),))), b.add(Fill(0.0, (4,)))), 0))
        return b.add(Contract("jk,k->j", b.add(Param("V")), both))

    s = Simplified(body)
    assert isinstance(s.result(), Contract)
    assert s.count(Contract) == 1


def test_concatenated_parameters_stay_together() -> None:
    def body(b: Builder) -> str:
        both = b.add(Concat((b.add(Param("a")), b.add(Param("b"))), 0))
        return b.add(Contract("k,k->", both, both))

    assert Simplified(body).count(Concat) == 1


def test_a_bilinear_form_of_a_concat_becomes_four_blocks() -> None:
    def body(b: Builder) -> str:
        v = children(b)
        return b.add(Contract("ij,j->i", b.add(Contract("ijk,k->ij", b.add(Param("T")), v)), v))

    s = Simplified(body)
    blocks = {op.ranges[1:] for op in s.ops if isinstance(op, Slice) and s.op(op.x) == Param("T")}
    assert blocks == {(r, c) for r in ((0, 4, 1), (4, 8, 1)) for c in ((0, 4, 1), (4, 8, 1))}


# Over children


def over(b: Builder, value: str, fn: str = "add") -> str:
    return b.add(OverChildren(fn, value, "kids"))  # type: ignore[arg-type]


@pytest.mark.parametrize("fact", [Fact(IsLeaf(), True), Fact(Length("kids"), 0), Fact(IsNone("kids"), True)])
def test_over_no_children_is_zero(fact: Fact) -> None:
    s = Simplified(lambda b: (over(b, b.add(Unary("exp", h_k(b)))), b.add(Arity("kids"))), fact)
    assert s.result(0) == Fill(0.0, (4,))
    assert s.result(1) == Fill(0.0, ())


@pytest.mark.parametrize("fact", [Fact(IsLeaf(), False), Fact(IsNone("left"), True), Fact(Length("kids"), 2)])
def test_over_some_children_is_not(fact: Fact) -> None:
    assert Simplified(lambda b: over(b, b.add(Unary("exp", h_k(b)))), fact).count(OverChildren) == 1


def test_a_told_length_is_a_constant() -> None:
    assert Simplified(lambda b: b.add(Arity("kids")), Fact(Length("kids"), 3)).ops == [Fill(3.0, ())]
    assert Simplified(lambda b: b.add(Arity("kids")), Fact(IsLeaf(), False)).ops == [Arity("kids")]


@pytest.mark.parametrize(("fn", "expected"), [("add", Binary), ("max", Where)])
def test_what_no_child_changes_is_counted(fn: str, expected: type) -> None:
    m = model(lambda b: over(b, b.add(Unary("tanh", h_k(b))), fn))
    kind = m.kinds[0]
    lets = [replace(let, op=Field("x")) if isinstance(let.op, State) else let for let in kind.lets]
    m = replace(m, kinds=(replace(kind, lets=tuple(lets)),))
    verify(m)
    simple = simplify(m)
    verify(simple)
    assert isinstance(simple.kinds[0].lets[-1].op, expected)
    assert not any(isinstance(let.op, OverChildren) or let.over for let in simple.kinds[0].lets)


def product(b: Builder) -> str:
    return b.add(Contract("jk,k->j", b.add(Param("W")), h_k(b)))


def test_products_leave_sums() -> None:
    s = Simplified(lambda b: over(b, product(b)))
    result = s.result()
    assert isinstance(result, Contract)
    assert s.op(result.y) == OverChildren("add", _let(s, State("h", EACH)), "kids")


def test_products_leave_sums_with_a_bias() -> None:
    s = Simplified(lambda b: over(b, b.add(Binary("add", product(b), b.add(Param("b"))))))
    assert {let.over for let in s.kind.lets if isinstance(let.op, Contract)} == {None}
    assert Arity("kids") in s.ops


def test_products_stay_under_a_maximum() -> None:
    s = Simplified(lambda b: over(b, product(b), "max"))
    assert isinstance(s.result(), OverChildren)


def test_products_stay_where_they_are_needed_anyway() -> None:
    def body(b: Builder) -> tuple[str, str]:
        p = product(b)
        return over(b, p), over(b, b.add(Unary("tanh", p)))

    s = Simplified(body)
    assert s.count(Contract) == 1
    assert s.count(OverChildren) == 2


def test_products_of_two_child_values_stay() -> None:
    s = Simplified(lambda b: over(b, b.add(Contract("i,j->ij", h_k(b), b.add(Unary("exp", h_k(b)))))))
    assert isinstance(s.result(), OverChildren)
