"""The printed form of programs, and the repr that rebuilds them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import cortex.ilir.ir as ilir
import cortex.ir.scalar as scalar
from cortex.ilir.ir import Accumulate, Barrier, Case, For, If, Let, Store, Switch
from cortex.ilir.show import show, show_expr, show_stmts
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var

i, j, x = Var("i"), Var("j"), Var("x", "f32")


def rebuilt(value: object) -> object:
    """eval(repr(value))."""
    return eval(repr(value), {**vars(scalar), **vars(ilir), "inf": math.inf})


def test_repr_rebuilds_programs(tree_rnn: Any, gated: Any) -> None:
    for program in (tree_rnn, gated):
        assert rebuilt(program.func) == program.func


def test_repr_rebuilds_every_statement_and_expression() -> None:
    e = Select(
        Binary("lt", i, Int(3)), Fma(x, Float(math.inf), Cast(i, "f32")), Unary("exp", Load("a", (Index("f", (i,)),)))
    )
    body = (
        Let(x, e),
        If(Unary("not", Binary("eq", i, j)), (Store("a", (i,), x),), (Barrier(),)),
        Switch(Binary("mod", i, Int(2)), (Case(1, (Accumulate("a", (i,), "max", x),)),)),
        For("k", Int(0), Int(4), (), turned=i),
    )
    f = ilir.Func("all", ("n",), (), (), (For("i", Int(0), Var("n"), body),))
    assert rebuilt(f) == f


def test_show_programs(tree_rnn: Any, gated: Any, golden: Callable[[str, str], None]) -> None:
    golden("ilir/tree_rnn", show(tree_rnn.func))
    golden("ilir/gated", show(gated.func))


def test_show_statements(golden: Callable[[str, str], None]) -> None:
    body = (
        Let(x, Load("a", (i,))),
        If(Binary("lt", i, j), (Store("a", (i,), x),), (Store("a", (j,), x), Barrier())),
        If(Binary("ge", i, j), ()),
        Switch(
            Binary("mod", Index("group_len", (Var("g"),)), Int(6)),
            (Case(1, (Accumulate("a", (i,), "min", x),)), Case(2, (Accumulate("a", (i,), "max", x),))),
        ),
        For("k", Int(0), Int(4), (Store("a", (Var("k"),), x),), turned=Binary("add", i, j)),
        For("p", Int(0), Int(4), (Store("a", (Var("p"),), x),), ilir.LoopKind.PARALLEL, i),
    )
    golden("ilir/statements", show_stmts(body))


def test_marked_loop(tree_rnn: Any, golden: Callable[[str, str], None]) -> None:
    golden("ilir/marked", show_stmts(tree_rnn.func.body, "k"))


def test_mark_is_only_on_that_loop() -> None:
    text = show_stmts((For("n", Int(0), Int(2), (For("n_i", Int(0), Int(3), ()),)),), marked="n")
    assert text.split("\n") == ["> for n in 0..2:", "    for n_i in 0..3:", "      pass"]


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Binary("add", Binary("mul", i, Int(16)), j), "i*16 + j"),
        (Binary("mul", Binary("add", i, j), Int(16)), "(i + j) * 16"),
        (Binary("sub", i, Binary("sub", j, Int(1))), "i - (j - 1)"),
        (Binary("sub", Binary("sub", i, j), Int(1)), "i - j - 1"),
        (Binary("mul", x, Binary("div", x, Float(3.0))), "x * (x / 3.0)"),
        (Binary("and", Binary("lt", i, j), Unary("not", Binary("eq", i, j))), "i < j and not i == j"),
        (Binary("and", Binary("or", Var("p", "bool"), Var("q", "bool")), Var("p", "bool")), "(p or q) and p"),
        (Unary("neg", Binary("add", x, x)), "-(x + x)"),
        (Unary("neg", Unary("neg", x)), "-(-x)"),
        (Binary("sub", x, Float(-0.0)), "x - -0.0"),
        (Unary("neg", Float(-1.0)), "-(-1.0)"),
        (Binary("floordiv", Index("f", (i,)), Int(8)), "f(i) // 8"),
        (Binary("mod", Binary("mul", i, Int(2)), Int(6)), "i*2 mod 6"),
        (Binary("mul", Binary("mod", i, Int(6)), Int(2)), "(i mod 6) * 2"),
        (Binary("max", x, Float(math.inf)), "max(x, inf)"),
        (Select(Cast(Int(1), "bool"), Cast(i, "f32"), Fma(x, x, x)), "select(true, f32(i), fma(x, x, x))"),
        (Binary("eq", Binary("lt", i, j), Binary("lt", j, i)), "(i < j) == (j < i)"),
    ],
)  # fmt: skip
def test_expressions(e: Expr, text: str) -> None:
    assert show_expr(e) == text
