"""Where `expand_math` puts the bindings."""

from __future__ import annotations

import numpy as np

from cortex.ilir import interp
from cortex.ilir.ir import Accumulate, Buffer, Case, For, Func, If, Let, Scope, Stmt, Store, Switch
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Unary, Var
from cortex.passes.expand_math import expand_math

x = Load("x", (Var("i"),))
VALUES = np.array([-3.0, -0.5, 0.25, 2.0])


def program(*body: Stmt) -> Func:
    buffers = (Buffer("x", "f32", (Int(4),), Scope.FIELD), Buffer("y", "f32", (Int(4),), Scope.STATE))
    return Func("f", (), (), buffers, (For("i", Int(0), Int(4), body),))


def store(value: Expr) -> Store:
    return Store("y", (Var("i"),), value)


def transcendental(f: Func) -> set[str]:
    return {n.fn for n in walk(f) if isinstance(n, Unary)} & {"exp", "tanh", "sigmoid"}


def results(f: Func) -> np.ndarray:
    return interp.run(f, {}, {}, {"x": VALUES}).buffers["y"]


def inner(f: Func) -> tuple[Stmt, ...]:
    (loop,) = f.body
    assert isinstance(loop, For)
    return loop.body


def check(f: Func) -> Func:
    """Nothing transcendental is left, the result verifies and means the same."""
    expanded = expand_math(f)
    verify(expanded)
    assert transcendental(f) and not transcendental(expanded)
    np.testing.assert_allclose(results(expanded), results(f), rtol=1e-6)
    return expanded


def test_nested_functions_are_bound_before_the_statement() -> None:
    f = check(program(store(Unary("tanh", Unary("exp", Binary("mul", x, Unary("sigmoid", x)))))))
    *lets, last = inner(f)
    assert all(isinstance(s, Let) for s in lets)
    assert isinstance(last, Store) and isinstance(last.value, Var)


def test_the_same_value_is_computed_once() -> None:
    once = inner(check(program(store(Unary("exp", x)))))
    twice = inner(check(program(store(Binary("add", Unary("exp", x), Unary("exp", x))))))
    assert len(twice) == len(once)


def test_an_earlier_store_is_seen() -> None:
    y = Load("y", (Var("i"),))
    check(program(store(Unary("exp", x)), store(Unary("exp", y)), store(Unary("tanh", y))))


def test_product_of_an_accumulation_stays_visible() -> None:
    value = Binary("mul", Unary("sigmoid", x), x)
    f = check(program(store(Float(1.0)), Accumulate("y", (Var("i"),), "add", value)))
    last = inner(f)[-1]
    assert isinstance(last, Accumulate) and isinstance(last.value, Binary) and last.value.fn == "mul"


def test_bindings_stay_inside_branches() -> None:
    big = Binary("gt", Unary("exp", x), Float(1.0))
    arm = Case(1, (store(Unary("sigmoid", x)),))
    f = check(program(store(Float(0.0)), If(big, (store(Unary("tanh", x)),), (Switch(Int(1), (arm,)),))))
    branch = inner(f)[-1]
    assert isinstance(branch, If)
    assert isinstance(branch.then[0], Let) and isinstance(branch.orelse[0], Switch)


def test_names_that_exist_are_not_taken() -> None:
    m1 = Var("m1", "f32")
    check(program(Let(m1, x), store(Binary("add", Unary("exp", x), m1))))


def test_a_program_without_functions_is_unchanged() -> None:
    f = program(store(Unary("log", x)), store(Unary("sqrt", x)))
    assert expand_math(f) is f
