"""Code returns soon once the word behind its sizes is set, and computes the same as ever while it is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cortex.codegen.llvm.run import prepare
from cortex.codegen.llvm.stop import LONG, SHORT, looks
from cortex.codegen.target import Target
from cortex.ilir.ir import Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Int, Var

N, MANY = Var("n"), 2 * SHORT


def loop(var: str, hi: Expr | int, *body: Stmt, kind: LoopKind = LoopKind.SERIAL, turned: Expr | None = None) -> For:
    return For(var, Int(0), Int(hi) if isinstance(hi, int) else hi, body, kind, turned=turned)


def store(index: Expr) -> Store:
    return Store("y", (index,), Float(1.0))


def scaled(a: str, factor: int, b: str) -> Expr:
    return Binary("add", Binary("mul", Var(a), Int(factor)), Var(b))


BODIES: dict[str, Callable[[], Stmt]] = {
    "cheap": lambda: loop("i", N, store(Var("i"))),
    "shared out": lambda: loop("i", N, store(Var("i")), kind=LoopKind.PARALLEL),
    "turned": lambda: loop("i", N, store(Var("i")), turned=Int(1)),
    "constant": lambda: loop("i", MANY, store(Var("i"))),
    "long iterations": lambda: loop("i", MANY // LONG, loop("j", LONG, store(scaled("i", LONG, "j")))),
    "vectors": lambda: loop(
        "i", MANY // 4, loop("j", 4, store(scaled("i", 4, "j")), kind=LoopKind.VECTORIZED)
    ),
    "lists": lambda: loop("g", 1, loop("i", N, loop("j", Binary("min", N, Int(1)), store(scaled("i", 1, "j"))))),
}  # fmt: skip


def func(body: Stmt) -> Func:
    return Func("f", ("n",), (), (Buffer("y", "f32", (N,), Scope.STATE),), (body,))


@pytest.mark.parametrize("name", BODIES)
def test_code_is_stopped(name: str, target: Target) -> None:
    made = prepare(func(BODIES[name]()), target, {"n": MANY}, {}, {})
    made.sizes[-1] = 1
    made.call()
    done = np.count_nonzero(made.buffers["y"] == 1)
    assert done <= SHORT
    made.sizes[-1] = 0
    made.call()
    assert (made.buffers["y"] == 1).all()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000, SHORT - 1, SHORT, SHORT + 1])
def test_pieces_are_the_whole_loop(n: int, target: Target) -> None:
    made = prepare(func(BODIES["cheap"]()), target, {"n": n}, {}, {})
    made.call()
    assert (made.buffers["y"] == 1).all()


def test_short_loops_do_not_look() -> None:
    inner = loop("j", 64, loop("k", 256, store(scaled("j", 256, "k"))))
    assert not looks((loop("i", 4, inner),), 8)
    outer = loop("i", N, inner)
    assert looks((outer,), 8) == {id(outer): 1}
