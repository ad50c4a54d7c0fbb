"""Simplification keeps the value of every expression, and equal affine expressions become equal."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.ilir.ir import For, Let, Store
from cortex.ilir.show import show_expr
from cortex.ir.scalar import Binary, Cast, Expr, Float, Index, Int, Load, Select, Unary, Var, dtype_of
from cortex.ir.simplify import (
    FALSE,
    TRUE,
    add,
    affine,
    ceildiv,
    floordiv,
    free_vars,
    maximum,
    minimum,
    mod,
    mul,
    simplify,
    sub,
    substitute,
)

i, j, k, n = Var("i"), Var("j"), Var("k"), Var("n")
x = Var("x", "f32")
BOUNDS = {"i": (0, 15), "j": (0, 3), "k": (-5, 5)}

BINARY: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "min": min, "max": max, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "and": operator.and_, "or": operator.or_,
}  # fmt: skip
UNARY: dict[str, Any] = {"neg": operator.neg, "abs": abs, "not": operator.not_}


def value(e: Expr, env: dict[str, int]) -> int | bool:
    match e:
        case Int(c):
            return c
        case Var(name):
            return env[name]
        case Unary(fn, y):
            return UNARY[fn](value(y, env))
        case Binary(fn, y, z):
            return BINARY[fn](value(y, env), value(z, env))
        case Select(cond, y, z):
            return value(y, env) if value(cond, env) else value(z, env)
        case Cast(y, dtype):
            return bool(value(y, env)) if dtype == "bool" else int(value(y, env))
        case _:
            raise AssertionError(e)


@st.composite
def integers(draw: st.DrawFn, depth: int = 4) -> Expr:
    form = draw(st.integers(0, 9)) if depth else 0
    if form < 2:
        return draw(st.sampled_from([i, j, k]) | st.integers(-20, 20).map(Int))
    operand = integers(depth=depth - 1)
    if form < 6:
        return Binary(draw(st.sampled_from(["add", "sub", "mul", "min", "max"])), draw(operand), draw(operand))
    if form < 8:
        divisor = Int(draw(st.sampled_from([1, 2, 3, 4, 8, 16])))
        return Binary(draw(st.sampled_from(["floordiv", "mod"])), draw(operand), divisor)
    if form < 9:
        return Unary(draw(st.sampled_from(["neg", "abs"])), draw(operand))
    return Select(draw(conditions(depth=depth - 1)), draw(operand), draw(operand))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 4) -> Expr:
    form = draw(st.integers(0, 3)) if depth else 0
    if form < 2:
        operand = integers(depth=max(depth - 1, 0))
        return Binary(draw(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])), draw(operand), draw(operand))
    operand = conditions(depth=depth - 1)
    if form < 3:
        return Unary("not", draw(operand))
    return Binary(draw(st.sampled_from(["and", "or"])), draw(operand), draw(operand))


points = st.fixed_dictionaries({name: st.integers(*limits) for name, limits in BOUNDS.items()})


@settings(max_examples=400)
@given(integers() | conditions(), points, st.booleans())
def test_value_is_kept_and_form_is_final(e: Expr, env: dict[str, int], bounded: bool) -> None:
    bounds = BOUNDS if bounded else None
    simple = simplify(e, bounds)
    assert value(simple, env) == value(e, env)
    assert dtype_of(simple) == dtype_of(e)
    assert simplify(simple, bounds) == simple


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from([i, j, k, Index("f", (n,))]), st.integers(-9, 9)), min_size=1), st.randoms())
def test_equal_affine_expressions_become_equal(terms: list[tuple[Expr, int]], random: Any) -> None:
    shuffled = random.sample(terms, len(terms))
    in_order: Expr = Int(7)
    for atom, c in terms:
        in_order = Binary("add", in_order, Binary("mul", Int(c), atom))
    nested: Expr = Int(0)
    for atom, c in shuffled:
        nested = Binary("sub", Binary("mul", atom, Int(c)), Unary("neg", nested))
    assert simplify(in_order) == simplify(Binary("add", nested, Int(7)))


@settings(max_examples=200)
@given(integers(), points)
def test_affine_decomposition(e: Expr, env: dict[str, int]) -> None:
    found = affine(e, "i")
    if found is not None:
        coefficient, rest = found
        assert "i" not in free_vars(rest)
        assert coefficient * env["i"] + value(rest, env) == value(e, env)


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Binary("add", j, Binary("mul", Int(16), i)), "i*16 + j"),
        (Binary("add", Int(3), Binary("add", i, Int(4))), "i + 7"),
        (Binary("sub", Int(3), i), "3 - i"),
        (Binary("sub", Binary("sub", Int(-3), i), Int(1)), "i * -1 - 4"),
        (Binary("mul", Binary("add", i, Int(1)), j), "i*j + j"),
        (Binary("add", i, Index("f", (Binary("add", n, Int(0)),))), "f(n) + i"),
        (Binary("floordiv", Binary("add", Binary("mul", i, Int(16)), j), Int(16)), "i"),
        (Binary("mod", Binary("add", Binary("mul", i, Int(16)), j), Int(16)), "j"),
        (Binary("floordiv", add(mul(n, 4), mul(i, 2)), Int(8)), "(n*2 + i) // 4"),
        (Binary("mod", Binary("mul", n, Int(4)), Int(8)), "(n mod 2) * 4"),
        (Binary("floordiv", Binary("floordiv", n, Int(3)), Int(5)), "n//15"),
        (Binary("floordiv", Binary("add", Binary("mul", n, Int(4)), i), Int(4)), "n + i//4"),
        (Binary("floordiv", Binary("add", Binary("mul", n, Int(4)), k), Int(4)), "(n*4 + k) // 4"),
        (Binary("floordiv", add(add(mul(n, 48), mul(k, 16)), j), Int(32)), "(n*3 + k) // 2"),
        (Binary("mod", add(add(mul(n, 48), mul(k, 16)), j), Int(32)), "((n*3 + k) mod 2) * 16 + j"),
        (Binary("min", Int(8), Binary("min", n, Int(4))), "min(n, 4)"),
        (Binary("max", i, Int(-1)), "i"),
        (Binary("lt", j, Int(4)), "true"),
        (Binary("eq", Binary("add", i, Int(1)), i), "false"),
        (Binary("lt", n, j), "n < j"),
        (Unary("not", Binary("lt", n, j)), "n >= j"),
        (Binary("and", Binary("lt", j, Int(4)), Binary("lt", n, i)), "n < i"),
        (Binary("or", Binary("lt", j, Int(4)), Binary("lt", n, i)), "true"),
        (Select(Binary("lt", Int(4), j), x, Float(2.0)), "2.0"),
        (Load("a", (Binary("add", i, Int(0)), Int(3))), "a[i, 3]"),
        (Cast(Binary("add", Int(1), Int(2)), "f32"), "3.0"),
        (Cast(Int(2**24 + 1), "f32"), "f32(16777217)"),
    ],
)  # fmt: skip
def test_integers(e: Expr, text: str) -> None:
    assert show_expr(simplify(e, BOUNDS)) == text


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Binary("mul", x, Float(1.0)), "x"),
        (Binary("mul", Float(1.0), x), "x"),
        (Binary("div", x, Float(1.0)), "x"),
        (Binary("sub", x, Float(0.0)), "x"),
        (Binary("add", x, Float(-0.0)), "x"),
        (Unary("neg", Float(2.0)), "-2.0"),
        (Unary("neg", Unary("neg", x)), "x"),
        # These would change a bit: of a signed zero, a NaN, or by rounding.
        (Binary("add", x, Float(0.0)), "x + 0.0"),
        (Binary("sub", x, Float(-0.0)), "x - -0.0"),
        (Binary("mul", x, Float(0.0)), "x * 0.0"),
        (Binary("sub", x, x), "x - x"),
        (Binary("add", Binary("add", x, Float(1.0)), Float(2.0)), "x + 1.0 + 2.0"),
        (Binary("add", Float(1.0), x), "1.0 + x"),
        (Binary("max", Float(1.0), x), "max(1.0, x)"),
        (Binary("lt", x, x), "x < x"),
        (Unary("not", Binary("lt", x, Float(0.0))), "not x < 0.0"),
        (Select(Binary("lt", x, Float(0.0)), Float(0.0), Float(-0.0)), "select(x < 0.0, 0.0, -0.0)"),
    ],
)
def test_floats_keep_every_bit(e: Expr, text: str) -> None:
    assert show_expr(simplify(e)) == text


def test_constructors_fold() -> None:
    assert add(1, 2) == Int(3) and add(i, 0) is i and add(0, i) is i
    assert add(add(i, 2), 3) == add(3, add(2, i)) == Binary("add", i, Int(5))
    assert add(i, -2) == sub(i, 2) == Binary("sub", i, Int(2)) and add(sub(i, 2), 2) is i
    assert sub(i, i) == Int(0) and sub(5, 2) == Int(3) and sub(2, i) == Binary("sub", Int(2), i)
    assert sub(x, x) == Binary("sub", x, x)
    assert mul(i, 1) is i and mul(0, i) == Int(0) and mul(mul(i, 2), 3) == mul(6, i) == Binary("mul", i, Int(6))
    assert floordiv(7, 2) == Int(3) and floordiv(i, 1) is i and floordiv(mul(i, 8), 4) == mul(i, 2)
    assert mod(7, 4) == Int(3) and mod(i, 1) == Int(0) and mod(mul(i, 8), 4) == Int(0)
    assert ceildiv(9, 4) == Int(3) and ceildiv(n, 4) == Binary("floordiv", Binary("add", n, Int(3)), Int(4))
    assert minimum(2, 3) == Int(2) and maximum(2, 3) == Int(3) and minimum(i, i) is i
    assert maximum(i, 3) == Binary("max", i, Int(3))


@settings(max_examples=100)
@given(integers(), integers(), points)
def test_constructors_keep_values(a: Expr, b: Expr, env: dict[str, int]) -> None:
    u, v = value(a, env), value(b, env)
    built = {add(a, b): u + v, sub(a, b): u - v, mul(a, b): u * v, minimum(a, b): min(u, v), maximum(a, b): max(u, v)}
    for divisor in (1, 4, 7):
        built |= {
            floordiv(a, divisor): u // divisor,
            mod(a, divisor): u % divisor,
            ceildiv(a, divisor): -(-u // divisor),
        }
    for e, expected in built.items():
        assert value(e, env) == expected


def test_true_and_false() -> None:
    assert simplify(Binary("lt", Int(1), Int(2))) == TRUE
    assert simplify(Unary("not", TRUE)) == FALSE
    assert simplify(Cast(TRUE, "i64")) == Int(1)


def test_substitute_leaves_binders_alone() -> None:
    body = (Let(Var("a"), add(i, j)), For("k", i, n, (Store("h", (k, Var("a")), Cast(i, "f32")),)))
    inside = For("k", Int(3), n, (Store("h", (k, Var("a")), Cast(Int(3), "f32")),))
    assert substitute(body, {"i": Int(3)}) == (Let(Var("a"), Binary("add", Int(3), j)), inside)
    assert substitute(body[1], {"a": Int(9)}) == For("k", i, n, (Store("h", (k, Int(9)), Cast(i, "f32")),))
    assert substitute(Let(Var("a"), i), {"a": Int(9)}) == Let(Var("a"), i)
    assert substitute(body, {"z": Int(0)})[1] is body[1]
    assert substitute(i, {"i": add(j, 1)}) == add(j, 1)


def test_free_vars() -> None:
    body = (Let(Var("a"), add(i, j)), For("k", i, n, (Store("h", (k, Var("a")), x),)))
    assert free_vars(body) == {"i", "j", "n", "x"}
    assert free_vars(Load("h", (Index("f", (i,)), Int(0)))) == {"i"}


def test_affine() -> None:
    assert affine(add(mul(add(i, j), 3), k), "i") == (3, simplify(add(mul(j, 3), k)))
    assert affine(mul(i, j), "i") is None
    assert affine(Index("f", (i,)), "i") is None
    assert affine(floordiv(i, 2), "i") is None
    assert affine(x, "i") is None
    assert affine(n, "i") == (0, n)


def test_infinities_survive() -> None:
    assert simplify(Unary("neg", Float(math.inf))) == Float(-math.inf)
