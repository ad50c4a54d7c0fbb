"""The rules of simplification about contractions and children: where each fires and where it must not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ra_simplified import EACH, Simplified, h_k, model, x

from cortex.ra.build import Builder
from cortex.ra.ir import (
    Arity,
    Binary,
    Concat,
    Contract,
    Fact,
    Field,
    Fill,
    IsLeaf,
    IsNone,
    Length,
    OverChildren,
    Param,
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


def test_the_parameter_comes_first_under_standard_letters() -> None:
    s = Simplified(lambda b: b.add(Contract("n,mn->m", x(b), b.add(Param("W")))))
    assert s.result() == Contract("ik,k->i", s.let(Param("W")), s.let(Field("x")))


def test_two_node_values_keep_their_order() -> None:
    s = Simplified(lambda b: b.add(Contract("i,j->ij", b.add(Field("y")), x(b))))
    assert s.result() == Contract("i,j->ij", s.let(Field("y")), s.let(Field("x")))


def test_contractions_without_sum_are_products() -> None:
    s = Simplified(lambda b: b.add(Contract("j,j->j", x(b), b.add(Param("a")))))
    assert isinstance(s.result(), Binary)
    outer = Simplified(lambda b: b.add(Contract("i,j->ij", x(b), b.add(Param("a")))))
    assert isinstance(outer.result(), Contract)


def test_transposes_become_letters() -> None:
    def body(b: Builder) -> str:
        return b.add(Contract("jk,k->j", b.add(Transpose(b.add(Param("W")), (1, 0))), b.add(Field("y"))))

    s = Simplified(body)
    assert s.result() == Contract("ki,k->i", s.let(Param("W")), s.let(Field("y")))


def test_a_transposed_result_does_unless_it_is_needed_as_it_was() -> None:
    def product(b: Builder) -> str:
        return b.add(Contract("i,j->ij", x(b), b.add(Field("y"))))

    once = Simplified(lambda b: b.add(Transpose(product(b), (1, 0))))
    assert once.result() == Contract("j,i->ij", once.let(Field("x")), once.let(Field("y")))

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
    assert Contract("ik,k->i", s.let(Param("W")), s.let(Field("x"))) in s.ops


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


def test_an_absent_child_is_multiplied_by_weights_alone() -> None:
    def body(b: Builder) -> str:
        both = b.add(Concat((b.add(State("h", (Slot("left"),))), b.add(Fill(0.0, (4,)))), 0))
        return b.add(Contract("jk,k->j", b.add(Param("V")), both))

    s = Simplified(body)
    products = [op for op in s.ops if isinstance(op, Contract)]
    assert len(products) == 2
    assert any(isinstance(s.op(product.y), Fill) for product in products)


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


@pytest.mark.parametrize("fn", ["add", "max"])
def test_what_no_child_changes_is_counted(fn: str) -> None:
    m = model(lambda b: over(b, b.add(Unary("tanh", h_k(b))), fn))
    kind = m.kinds[0]
    lets = [replace(let, op=Field("x")) if isinstance(let.op, State) else let for let in kind.lets]
    m = replace(m, kinds=(replace(kind, lets=tuple(lets)),))
    verify(m)
    simple = simplify(m)
    verify(simple)
    assert isinstance(simple.kinds[0].lets[-1].op, Where)
    assert not any(isinstance(let.op, OverChildren) or let.over for let in simple.kinds[0].lets)


def product(b: Builder) -> str:
    return b.add(Contract("jk,k->j", b.add(Param("W")), h_k(b)))


def test_products_leave_sums() -> None:
    s = Simplified(lambda b: over(b, product(b)))
    result = s.result()
    assert isinstance(result, Contract)
    assert s.op(result.y) == OverChildren("add", s.let(State("h", EACH)), "kids")


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
