"""Every scalar operation, on every target, in vectors and one by one: the same bits as NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cortex.codegen.llvm.run import run
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.ir import Buffer, For, Func, LoopKind, Scope, Store
from cortex.ir.node import rewrite
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Int, Load, Select, Unary, Var

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, -7.25]
X, Y = (g.ravel().astype(np.float32) for g in np.meshgrid(SPECIAL, SPECIAL))
COUNT = len(X)

x, y = Load("x", (Var("i"),)), Load("y", (Var("i"),))
ZERO, ONE = Float(0.0), Float(1.0)


def elementwise(value: Expr, lanes: int) -> Func:
    """out[i] = value(i), `lanes` at a time."""
    i = Binary("add", Binary("mul", Var("b"), Int(lanes)), Var("lane"))
    inner = For("lane", Int(0), Int(lanes), (Store("out", (i,), at(value, i)),), LoopKind.VECTORIZED)
    shape = (Int(COUNT),)
    buffers = (
        Buffer("x", "f32", shape, Scope.FIELD),
        Buffer("y", "f32", shape, Scope.FIELD),
        Buffer("out", "f32", shape, Scope.STATE),
    )
    return Func("elementwise", (), (), buffers, (For("b", Int(0), Int(COUNT // lanes), (inner,)),))


def at(e: Expr, i: Expr) -> Expr:
    result: Expr = rewrite(e, lambda n: i if n == Var("i") else n)
    return result


def compute(value: Expr, target: Target, lanes: int) -> np.ndarray:
    return run(elementwise(value, lanes), target, {}, {}, {"x": X, "y": Y})["out"]


def as_float(cond: Expr) -> Expr:
    return Cast(cond, "f32")


CASES: dict[str, tuple[Expr, Callable[[], np.ndarray]]] = {
    "add": (Binary("add", x, y), lambda: X + Y),
    "sub": (Binary("sub", x, y), lambda: X - Y),
    "mul": (Binary("mul", x, y), lambda: X * Y),
    "div": (Binary("div", x, y), lambda: X / Y),
    "min": (Binary("min", x, y), lambda: np.minimum(X, Y)),
    "max": (Binary("max", x, y), lambda: np.maximum(X, Y)),
    "relu": (Binary("max", x, ZERO), lambda: np.maximum(X, 0)),
    "min with a constant": (Binary("min", ONE, x), lambda: np.minimum(1, X)),
    "copysign": (Binary("copysign", x, y), lambda: np.copysign(X, Y)),
    "neg": (Unary("neg", x), lambda: -X),
    "abs": (Unary("abs", x), lambda: np.abs(X)),
    "sqrt": (Unary("sqrt", x), lambda: np.sqrt(X)),
    "round": (Unary("round", x), lambda: np.rint(X)),
    "lt": (as_float(Binary("lt", x, y)), lambda: X < Y),
    "le": (as_float(Binary("le", x, y)), lambda: X <= Y),
    "gt": (as_float(Binary("gt", x, y)), lambda: X > Y),
    "ge": (as_float(Binary("ge", x, y)), lambda: X >= Y),
    "eq": (as_float(Binary("eq", x, y)), lambda: X == Y),
    "ne": (as_float(Binary("ne", x, y)), lambda: X != Y),
    "and": (as_float(Binary("and", Binary("lt", x, ONE), Binary("gt", y, ZERO))), lambda: (X < 1) & (Y > 0)),
    "or": (as_float(Binary("or", Binary("lt", x, ONE), Binary("gt", y, ZERO))), lambda: (X < 1) | (Y > 0)),
    "not": (as_float(Unary("not", Binary("lt", x, y))), lambda: ~(X < Y)),
    "select": (Select(Binary("lt", x, y), x, ONE), lambda: np.where(X < Y, X, 1)),
    "select by a constant": (Select(Cast(Int(0), "bool"), x, y), lambda: Y),
    "index as float": (Cast(Binary("mul", Var("i"), Int(3)), "f32"), lambda: 3 * np.arange(COUNT)),
    "index mod": (Cast(Binary("mod", Var("i"), Int(7)), "f32"), lambda: np.arange(COUNT) % 7),
    "index floordiv": (Cast(Binary("floordiv", Var("i"), Int(3)), "f32"), lambda: np.arange(COUNT) // 3),
    "index min": (Cast(Binary("min", Var("i"), Int(9)), "f32"), lambda: np.minimum(np.arange(COUNT), 9)),
    "index squared": (Cast(Binary("mul", Var("i"), Var("i")), "f32"), lambda: np.arange(COUNT) ** 2),
    "index negated": (Cast(Unary("neg", Var("i")), "f32"), lambda: -np.arange(COUNT)),
    "index compared": (as_float(Binary("ge", Var("i"), Int(100))), lambda: np.arange(COUNT) >= 100),
    "truncated": (
        Cast(Cast(Select(Binary("lt", Unary("abs", x), Float(100.0)), x, ZERO), "i64"), "f32"),
        lambda: np.trunc(np.where(np.abs(X) < 100, X, 0)) + np.float32(0.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operation(name: str, target: Target) -> None:
    value, expected = CASES[name]
    with np.errstate(all="ignore"):
        want = expected().astype(np.float32)
    for lanes in (1, 4, target.lanes, 2 * target.lanes):
        np.testing.assert_array_equal(compute(value, target, lanes), want)


def test_fma_rounds_once_where_the_target_can(target: Target) -> None:
    with np.errstate(all="ignore"):
        twice = X * Y + X
        once = (X.astype(np.float64) * Y + X).astype(np.float32)  # differs from one rounding at most in ties
    got = compute(Fma(x, y, x), target, target.lanes)
    np.testing.assert_array_equal(got, once if target.has_fma else twice)


@pytest.mark.parametrize("power", [-149, -127, -126, -25, -1, 0, 1, 64, 127, 128])
def test_ldexp_overflows_and_underflows_like_a_product(power: int, target: Target) -> None:
    for lanes in (1, 2, target.lanes):
        value = Binary("ldexp", Binary("add", Binary("copysign", Float(0.25), x), ONE), Float(float(power)))
        with np.errstate(over="ignore"):
            want = np.ldexp(np.copysign(np.float32(0.25), X) + np.float32(1), power).astype(np.float32)
        np.testing.assert_array_equal(compute(value, target, lanes), want)


def test_ldexp_of_nan_is_nan(target: Target) -> None:
    nan = Float(float("nan"))
    for power in (Float(3.0), nan):
        assert np.isnan(compute(Binary("ldexp", nan, power), target, target.lanes)).all()


def test_transcendental_functions_must_have_been_expanded(target: Target) -> None:
    with pytest.raises(InternalError, match="expand_math"):
        compute(Unary("exp", x), target, 4)


def test_lanes_must_not_share_an_element(target: Target) -> None:
    inner = For("l", Int(0), Int(4), (Store("out", (Int(0),), ONE),), LoopKind.VECTORIZED)
    f = Func("clash", (), (), (Buffer("out", "f32", (Int(1),), Scope.STATE),), (inner,))
    with pytest.raises(InternalError, match="write one element"):
        run(f, target, {}, {}, {})


def test_unbound_variable_is_named(target: Target) -> None:
    f = Func("f", (), (), (Buffer("out", "f32", (Int(1),), Scope.STATE),), (Store("out", (Var("q"),), ONE),))
    with pytest.raises(InternalError, match="'q'"):
        run(f, target, {}, {}, {})


def test_constants_of_equal_numbers_keep_their_signs() -> None:
    """Texts of constants are kept, and 0.0 and -0.0 are equal keys."""
    from cortex.codegen.llvm.types import float_text

    first = float_text(-0.0), float_text(0.0), float_text(-0.0)
    assert first[0] == first[2] != first[1]
    assert float_text(0.0) == first[1]
    assert float_text(1.0) != float_text(-1.0)
