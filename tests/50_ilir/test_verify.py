"""Each rule of the language rejects a program that breaks it and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cortex.errors import InternalError
from cortex.ilir.ir import (
    Accumulate,
    Barrier,
    Buffer,
    Case,
    For,
    Func,
    If,
    IndexFunction,
    Let,
    LoopKind,
    PackedGate,
    Packing,
    Scope,
    Stmt,
    Store,
    Switch,
)
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.scalar import Binary, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var

i, n = Var("i"), Var("n")
ONE = Float(1.0)
VECTORIZED = LoopKind.VECTORIZED


def func(*body: Stmt) -> Func:
    return Func(
        "f",
        ("n",),
        (IndexFunction("child", n, ("below",), n),),
        (
            Buffer("w", "f32", (Int(4),), Scope.PARAM),
            Buffer("x", "f32", (n, Int(4)), Scope.FIELD),
            Buffer("wp", "f32", (Int(2), Int(1), Int(1), Int(2)), Scope.PACKED),
            Buffer("h", "f32", (n, Int(4)), Scope.STATE, 8),
            Buffer("r", "f32", (Int(4),), Scope.REGISTER),
            Buffer("mask", "bool", (n,), Scope.SCRATCH),
        ),
        body,
        (Packing("wp", (), 4, 1, 2, (PackedGate("w", (Var("j"),)),)),),
    )


def loop(*body: Stmt, hi: Expr = n, kind: LoopKind = LoopKind.SERIAL) -> For:
    return For("i", Int(0), hi, body, kind)


def store(value: Expr, at: Expr = i) -> Store:
    return Store("h", (at, Int(0)), value)


def test_accepts_correct_programs(tree_rnn: Any, gated: Any) -> None:
    verify(tree_rnn.func)
    verify(gated.func)
    both = Binary("and", Load("mask", (i,), "bool"), Unary("not", Binary("lt", Load("x", (i, Int(0))), ONE)))
    verify(func(loop(If(both, (store(Select(both, ONE, ONE)),)), Store("mask", (i,), both))))
    verify(func(replace(loop(store(ONE)), turned=Binary("add", n, Int(1)))))
    # A name may be bound again where the first binding is not visible.
    verify(func(If(Binary("lt", n, Int(1)), (Let(i, n),), (Let(i, n),)), loop(store(ONE))))


BROKEN = [
    ("loop variable 'i' is bound already", func(loop(), loop())),
    ("loop variable 'i' is bound already", func(loop(loop()))),
    ("loop variable 'n' is bound already", func(For("n", Int(0), Int(3), ()))),
    ("'i' is used as i64 but is not bound", func(store(ONE))),
    ("'i' is used as i64 but is not bound", func(loop(), store(ONE))),
    ("'i' is used as i64 but is not bound", func(loop(hi=i))),
    ("'a' is used as f32 but is not bound", func(loop(store(Var("a", "f32")), Let(Var("a", "f32"), ONE)))),
    ("'a' is used as f32 but is not bound", func(loop(Let(Var("a", "f32"), ONE)), store(Var("a", "f32"), Int(0)))),
    ("'i' is used as f32 but is i64", func(loop(store(Var("i", "f32"))))),
    ("let hides 'i'", func(loop(Let(i, n)))),
    ("`1.0` is f32 where i64 is needed", func(Let(Var("a"), ONE))),
    ("no buffer is called 'z'", func(Store("z", (), ONE))),
    ("no buffer is called 'z'", func(loop(store(Load("z", (i,)))))),
    ("no index function is called 'parent'", func(loop(store(ONE, Index("parent", (i,)))))),
    ("index function 'child' takes one argument, not 2", func(loop(store(ONE, Index("child", (i, i)))))),
    ("'h' has 2 dimensions and is accessed with 1", func(loop(Store("h", (i,), ONE)))),
    ("'w' has 1 dimensions and is accessed with 2", func(loop(store(Load("w", (i, i)))))),
    ("`1.0` is f32 where i64 is needed", func(store(ONE, ONE))),
    ("`n` is i64 where f32 is needed", func(store(n, Int(0)))),
    ("`n` is i64 where bool is needed", func(If(n, ()))),
    ("`1.0` is f32 where i64 is needed", func(Switch(ONE, ()))),
    ("case 1 occurs twice", func(Switch(n, (Case(1, ()), Case(1, ()))))),
    ("`1.0` is f32 where i64 is needed", func(store(Binary("add", n, ONE), Int(0)))),
    ("`n` is i64 where f32 is needed", func(store(Unary("exp", n), Int(0)))),
    ("`1.0` is f32 where i64 is needed", func(store(ONE, Binary("mod", ONE, n)))),
    ("`n` is i64 where f32 is needed", func(store(Fma(ONE, n, ONE), Int(0)))),
    ("`n` is i64 where bool is needed", func(store(Select(n, ONE, ONE), Int(0)))),
    ("`n` is i64 where f32 is needed", func(store(Select(Binary("lt", n, n), ONE, n), Int(0)))),
    ("'mask' is not a buffer of f32", func(store(Load("mask", (Int(0),)), Int(0)))),
    ("accumulation into bool buffer 'mask'", func(Accumulate("mask", (n,), "max", Binary("lt", n, n)))),
    ("param buffer 'w' is written", func(Store("w", (n,), ONE))),
    ("field buffer 'x' is written", func(Accumulate("x", (n, n), "add", ONE))),
    ("packed buffer 'wp' is written", func(Store("wp", (n, n, n, n), ONE))),
    ("vectorized loop has bounds that are not constant", func(loop(store(ONE), kind=VECTORIZED))),
    ("vectorized loop is turned", func(replace(loop(store(ONE), hi=Int(4), kind=VECTORIZED), turned=n))),
    ("unrolled loop is turned", func(replace(loop(store(ONE), hi=Int(4), kind=LoopKind.UNROLLED), turned=n))),
    ("'i' is used as i64 but is not bound", func(replace(loop(store(ONE)), turned=i))),
    ("`1.0` is f32 where i64 is needed", func(replace(loop(store(ONE)), turned=ONE))),
    ("vectorized loop contains For", func(loop(For("k", Int(0), Int(2), ()), hi=Int(4), kind=VECTORIZED))),
    ("vectorized loop contains Barrier", func(loop(Barrier(), hi=Int(4), kind=VECTORIZED))),
    ("vectorized loop contains If", func(loop(If(Binary("lt", i, n), ()), hi=Int(4), kind=VECTORIZED))),
]


@pytest.mark.parametrize(("message", "broken"), BROKEN, ids=[f"{k}: {m}" for k, (m, _) in enumerate(BROKEN)])
def test_rejects_bodies(message: str, broken: Func) -> None:
    with pytest.raises(InternalError) as error:
        verify(broken)
    assert message in str(error.value)
    assert error.value.__notes__ == [show(broken)]


def with_buffer(name: str, /, **changes: Any) -> Func:
    f = func()
    return replace(f, buffers=tuple(replace(b, **changes) if b.name == name else b for b in f.buffers))


def with_packing(**changes: Any) -> Func:
    f = func()
    return replace(f, packings=tuple(replace(p, **changes) for p in f.packings))


@pytest.mark.parametrize(
    ("message", "broken"),
    [
        ("'n' is declared twice", with_buffer("h", name="n")),
        ("register buffer 'r' has a shape that is not constant", with_buffer("r", shape=(n,))),
        ("'m' is used as i64 but is not bound, in `shape of 'h'`", with_buffer("h", shape=(Var("m"), Int(4)))),
        ("buffer 'h' is aligned to 0", with_buffer("h", align=0)),
        ("packed buffer 'r' has no packing", with_buffer("r", scope=Scope.PACKED)),
        ("packed buffer 'wp' has shape (2, 1, 1, 2), its packing has (1, 1, 1, 4)", with_packing(width=4)),
        ("packed buffer 'wp' has shape (2, 1, 1, 2), its packing has (3, 2, 1, 1, 2)", with_packing(outer=(3,))),
        ("packing fills 'h', which is a state buffer", with_packing(buffer="h")),
        ("reads 'h', which is no f32 param", with_packing(gates=(PackedGate("h", (Int(0), Int(0))),))),
        ("'w' has 1 dimensions and is accessed with 2", with_packing(gates=(PackedGate("w", (Int(0), Int(0))),))),
        ("'o0' is used as i64 but is not bound", with_packing(gates=(PackedGate("w", (Var("o0"),)),))),
        ("'wp' is packed twice", replace(func(), packings=func().packings * 2)),
    ],
)  # fmt: skip
def test_rejects_declarations(message: str, broken: Func) -> None:
    with pytest.raises(InternalError) as error:
        verify(broken)
    assert message in str(error.value)
