"""What follows from declared facts, and what does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cortex import zoo
from cortex.ilir.ir import Func, IndexFunction
from cortex.ir.scalar import Binary, BinaryFn, Expr, Index, Int, Load, Select, Unary, Var
from cortex.ir.simplify import add, floordiv, mod, mul
from cortex.poly.prove import Prover

sys.path.insert(0, str(Path(__file__).parent))
from poly_programs import subject

N, X, Y = Var("n"), Var("x"), Var("y")


def prover(*functions: IndexFunction) -> Prover:
    return Prover(Func("f", ("n",), functions, (), ()))


def relation(fn: BinaryFn, x: Expr | int, y: Expr | int) -> Expr:
    return Binary(fn, Int(x) if isinstance(x, int) else x, Int(y) if isinstance(y, int) else y)


def at(x: Expr) -> Expr:
    return Index("p", (x,))


INSIDE = (relation("le", 0, X), relation("lt", X, N), relation("le", 0, Y), relation("lt", Y, N))


def test_sizes_are_not_negative() -> None:
    assert prover().implied((), relation("le", 0, N))
    assert not prover().implied((), relation("lt", 0, N))


def test_facts_hold_inside_the_domain_only() -> None:
    p = prover(IndexFunction("p", N, ("non_negative",), Int(7)))
    assert p.implied(INSIDE, relation("le", 0, at(X)))
    assert p.implied(INSIDE, relation("lt", at(X), 7))
    assert not p.implied((), relation("le", 0, at(X)))
    assert not p.implied(INSIDE, relation("lt", at(X), 6))


def test_increasing() -> None:
    before = (*INSIDE, relation("lt", X, Y))
    assert prover(IndexFunction("p", N, ("increasing",))).implied(before, relation("le", at(X), at(Y)))
    assert not prover(IndexFunction("p", N)).implied(before, relation("le", at(X), at(Y)))


def test_injective_keeps_accesses_apart() -> None:
    different = (*INSIDE, relation("ne", X, Y))
    assert prover(IndexFunction("p", N, ("injective",))).disjoint((at(X), Int(3)), (at(Y), Int(3)), different)
    assert not prover(IndexFunction("p", N)).disjoint((at(X), Int(3)), (at(Y), Int(3)), different)
    assert prover().disjoint((X, Int(3)), (X, Int(4)))


def test_below_allows_for_no_child() -> None:
    p = prover(IndexFunction("p", N, ("below",), N))
    assert p.implied((*INSIDE, relation("ne", at(X), -1)), relation("lt", X, at(X)))
    assert p.ask(INSIDE, relation("lt", X, at(X))).counterexample["p(x)"] == -1


def test_remainders() -> None:
    p = prover()
    assert p.implied((), relation("eq", mod(mul(N, 16), Int(8)), 0))
    assert not p.implied((), relation("eq", mod(N, Int(8)), 0))
    assert p.implied((relation("eq", mod(N, Int(8)), 0),), relation("eq", mod(N, Int(4)), 0))


def test_no_time_is_no_answer() -> None:
    """And it is not remembered: another time the clock may be kinder."""
    p = Prover(Func("f", ("n",), (), (), ()), milliseconds=0)
    assert p.ask((), relation("le", 0, N)).outcome == "unknown"
    p.milliseconds = 100
    assert p.implied((), relation("le", 0, N))


def test_products_and_quotients_of_variables() -> None:
    """The balanced tiles of a group: floor(tile * n / tiles) rows come before tile, and at most 9 belong to it."""
    tiles = floordiv(add(N, 8), 9)
    given = (relation("le", 0, X), relation("lt", X, tiles))
    first, end = floordiv(mul(X, N), tiles), floordiv(mul(add(X, 1), N), tiles)
    p = prover()
    assert p.implied(given, relation("le", end, N))
    assert p.implied(given, relation("le", Binary("sub", end, first), 9))
    assert not p.implied(given, relation("le", Binary("sub", end, first), 8))


def test_memory_may_change_between_two_loads() -> None:
    count = Load("count", (Int(0),), "i64")
    assert not prover().implied((relation("lt", count, 3),), relation("lt", count, 3))


def test_select_and_abs() -> None:
    magnitude = Select(relation("lt", X, 0), Unary("neg", X), X)
    assert prover().implied((), relation("eq", magnitude, Unary("abs", X)))


def test_the_same_question_is_asked_once() -> None:
    p = prover()
    for name in ("a", "b", "c"):
        v = Var(name)
        assert p.implied((relation("le", 0, v), relation("lt", v, 5)), relation("lt", v, 6))
    assert p.asked == 1


def test_counterexample_names_the_variables_of_the_question() -> None:
    answer = prover().ask((relation("le", 0, X),), relation("lt", X, N))
    assert answer.outcome == "refuted"
    assert answer.counterexample["x"] >= answer.counterexample["n"]


@pytest.mark.parametrize("name", [n for n in zoo.ENTRIES if n in ("tree_rnn", "dag_rnn")])
def test_groups_and_children(name: str) -> None:
    """What a schedule wants to know of two groups: their nodes are apart, and a child's group is another."""
    f = subject(name).funcs["lowered"]
    p = Prover(f)
    g, h, n, m = Var("g"), Var("h"), Var("n"), Var("m")

    def member(node: Expr, group: Expr) -> tuple[Expr, ...]:
        start, length = Index("group_start", (group,)), Index("group_len", (group,))
        inside = relation("le", 0, group), relation("lt", group, Var("num_groups"))
        return (*inside, relation("le", start, node), relation("lt", node, add(start, length)))

    apart = (*member(n, g), *member(m, h), relation("lt", g, h))
    assert p.disjoint((n,), (m,), apart)
    assert not p.disjoint((n,), (m,), (*member(n, g), *member(m, h)))
    if name == "tree_rnn":
        assert p.disjoint((Index("child_left", (n,)),), (m,), (*member(n, g), *member(m, g)))
