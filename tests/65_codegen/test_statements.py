"""Loops, branches and memory accesses: compiled code against the interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cortex.codegen.llvm.run import run
from cortex.codegen.target import Target
from cortex.ilir import interp
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
    Scope,
    Stmt,
    Store,
    Switch,
)
from cortex.ilir.verify import verify
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Var

N = Var("n")
RANDOM = np.random.default_rng(7)


def add(a: Expr, b: Expr) -> Expr:
    return Binary("add", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return Binary("mul", a, b)


def loop(var: str, hi: Expr | int, *body: Stmt, kind: LoopKind = LoopKind.SERIAL, lo: Expr | int = 0) -> For:
    first, last = (Int(e) if isinstance(e, int) else e for e in (lo, hi))
    return For(var, first, last, body, kind)


def lanes(var: str, hi: int, *body: Stmt, lo: int = 0) -> For:
    return loop(var, hi, *body, kind=LoopKind.VECTORIZED, lo=lo)


def unrolled(var: str, hi: int, *body: Stmt) -> For:
    return loop(var, hi, *body, kind=LoopKind.UNROLLED)


def field(name: str, *shape: Expr | int, align: int = 1) -> Buffer:
    return _buffer(name, shape, Scope.FIELD, align)


def state(name: str, *shape: Expr | int, align: int = 1) -> Buffer:
    return _buffer(name, shape, Scope.STATE, align)


def register(name: str, *shape: Expr | int) -> Buffer:
    return _buffer(name, shape, Scope.REGISTER, 1)


def _buffer(name: str, shape: tuple[Expr | int, ...], scope: Scope, align: int) -> Buffer:
    return Buffer(name, "f32", tuple(Int(e) if isinstance(e, int) else e for e in shape), scope, align)


def check(
    target: Target, buffers: tuple[Buffer, ...], body: tuple[Stmt, ...], index: dict[str, Any] | None = None, n: int = 5
) -> None:
    """Run both ways with random fields; everything the interpreter wrote must agree."""
    functions = tuple(IndexFunction(name, Int(len(values))) for name, values in (index or {}).items())
    f = Func("f", ("n",), functions, buffers, body)
    verify(f)
    given = {}
    for b in buffers:
        if b.scope is Scope.FIELD:
            shape = [n if e == N else e.value for e in b.shape if isinstance(e, Int) or e == N]
            given[b.name] = RANDOM.standard_normal(shape, dtype=np.float32)
    want = interp.run(f, {"n": n}, index or {}, given).buffers
    got = run(f, target, {"n": n}, index or {}, given)
    assert any(np.isfinite(w).any() for w in want.values())
    for name, values in want.items():
        np.testing.assert_allclose(got[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


def test_reduction_over_a_serial_loop(target: Target) -> None:
    i = Var("i")
    body = (Store("s", (Int(0),), Float(0.0)), loop("i", N, Accumulate("s", (Int(0),), "add", Load("x", (i,)))))
    check(target, (field("x", N), state("s", 1)), body)


@pytest.mark.parametrize("n", [1, 5])
def test_a_turned_loop_runs_down_where_it_is_odd(n: int, target: Target) -> None:
    """The last iteration to write s is the first one in odd g; bounds are constant, variable or of one iteration."""
    g = Var("g")

    def turned(var: str, lo: Expr | int, hi: Expr | int, column: int) -> For:
        return replace(loop(var, hi, Store("s", (g, Int(column)), Load("x", (Var(var),))), lo=lo), turned=g)

    loops = (turned("i", 0, N, 0), turned("j", 1, 4, 1), turned("k", g, add(g, Int(2)), 2), turned("l", 2, 3, 3))
    check(target, (field("x", 8), state("s", 4, 4)), (loop("g", 4, *loops),), n=n)


def test_a_loop_turned_by_an_unrolled_loop(target: Target) -> None:
    inner = replace(loop("i", N, Store("s", (Var("g"),), Load("x", (Var("i"),)))), turned=Var("g"))
    check(target, (field("x", N), state("s", 3)), (unrolled("g", 3, inner),))


@pytest.mark.parametrize("fn", ["max", "min"])
def test_extremum_in_vectors(fn: Any, target: Target) -> None:
    i, lane = Var("i"), Var("lane")
    body = (
        lanes("l0", 16, Store("s", (Var("l0"),), Float(0.0))),
        loop("i", N, lanes("lane", 16, Accumulate("s", (lane,), fn, Load("x", (i, lane))))),
    )
    check(target, (field("x", N, 16), state("s", 16)), body)


def test_matrix_times_vector_with_padded_rows(target: Target) -> None:
    j, lane = Var("j"), Var("lane")
    product = mul(Load("w", (j, lane)), Load("x", (j,)))
    body = (
        lanes("l0", 24, Store("y", (Var("l0"),), Float(0.0))),
        loop("j", N, lanes("lane", 24, Accumulate("y", (lane,), "add", product))),
        loop("i", N, unrolled("k", 3, Store("copy", (Var("i"), Var("k")), Load("w", (Var("i"), Var("k")))))),
    )
    check(target, (field("w", N, 24, align=16), field("x", N), state("y", 24), state("copy", N, 3, align=16)), body)


def test_bounds_from_index_functions(target: Target) -> None:
    """A ragged sum: row i has the elements start(i) .. start(i+1)-1, possibly none."""
    i, k = Var("i"), Var("k")
    body = (
        loop(
            "i",
            N,
            Store("s", (i,), Float(1.0)),
            loop(
                "k",
                Index("start", (add(i, Int(1)),)),
                Accumulate("s", (i,), "add", Load("x", (k,))),
                lo=Index("start", (i,)),
            ),
        ),
    )
    check(target, (field("x", 9), state("s", N)), body, {"start": [0, 2, 2, 5, 8, 9]})


def test_rows_gathered_by_an_index_function(target: Target) -> None:
    i, lane = Var("i"), Var("lane")
    row = Index("child", (i,))
    body = (loop("i", N, lanes("lane", 16, Store("y", (i, lane), add(Load("x", (row, lane)), Load("x", (i, lane)))))),)
    check(target, (field("x", N, 16), state("y", N, 16)), body, {"child": [3, 0, 4, 4, 1]})


@pytest.mark.parametrize("extent", [3, 8, 16])
def test_lanes_gathered_and_scattered(extent: int, target: Target) -> None:
    lane = Var("lane")
    permuted = Index("p", (lane,))
    body = (
        lanes("lane", extent, Store("y", (permuted,), Load("x", (lane,)))),
        lanes("l2", extent, Store("z", (Var("l2"),), Load("x", (Index("p", (Var("l2"),)),)))),
    )
    order = np.random.default_rng(extent).permutation(extent)
    check(target, (field("x", extent), state("y", extent), state("z", extent)), body, {"p": order})


def test_strided_lanes(target: Target) -> None:
    """Columns of a matrix, read and written across rows; a lane loop that does not start at 0."""
    lane, j = Var("lane"), Var("j")
    body = (
        loop("j", 6, lanes("lane", 8, Store("t", (j, lane), Load("x", (lane, j))))),
        loop("j2", 6, lanes("l2", 8, Store("u", (Var("l2"), Var("j2")), Load("t", (Var("j2"), Var("l2")))))),
        lanes("l3", 7, Store("v", (mul(Var("l3"), Int(2)),), Load("x", (Var("l3"), Int(0)))), lo=3),
    )
    check(target, (field("x", 8, 6, align=4), state("t", 6, 8), state("u", 8, 6), state("v", 14)), body)


def test_reversed_lanes(target: Target) -> None:
    reverse = Binary("sub", Int(7), Var("lane"))
    check(
        target, (field("x", 8), state("y", 8)), (lanes("lane", 8, Store("y", (reverse,), Load("x", (Var("lane"),)))),)
    )


@pytest.mark.parametrize("kind", range(4))
def test_switch(kind: int, target: Target) -> None:
    value = Load("x", (Var("i"),))
    arms = tuple(Case(k, (Store("y", (Var("i"),), mul(value, Float(k + 2.0))),)) for k in (0, 2))
    body = (loop("i", N, Store("y", (Var("i"),), value), Switch(Index("kind", (Int(0),)), arms), Barrier()),)
    check(target, (field("x", N), state("y", N)), body, {"kind": [kind]})


def test_branches(target: Target) -> None:
    i = Var("i")
    value = Load("x", (i,))
    positive = Binary("gt", value, Float(0.0))
    body = (
        loop(
            "i",
            N,
            If(positive, (Store("y", (i,), value),), (Store("y", (i,), Float(-1.0)),)),
            If(Binary("lt", i, Int(2)), (Accumulate("y", (i,), "add", Float(5.0)),)),
        ),
    )
    check(target, (field("x", N), state("y", N)), body)


def test_let_is_evaluated_once_before_what_follows(target: Target) -> None:
    """The bound value is the old one although the element is overwritten; it may be a vector or a lane index."""
    lane = Var("lane")
    old, where = Var("old", "f32"), Var("where")
    body = (
        lanes("l0", 8, Store("y", (Var("l0"),), Load("x", (Var("l0"),)))),
        lanes(
            "lane",
            8,
            Let(where, add(lane, Int(0))),
            Let(old, Load("y", (where,))),
            Store("y", (where,), Float(3.0)),
            Store("z", (where,), mul(old, Load("y", (where,)))),
        ),
    )
    check(target, (field("x", 8), state("y", 8), state("z", 8)), body)


def test_loads_see_earlier_stores_through_branches(target: Target) -> None:
    """What a branch computed is not taken for known after it."""
    i = Var("i")
    twice = mul(Load("x", (i,)), Float(2.0))
    body = (
        loop(
            "i",
            N,
            Store("y", (i,), Float(0.0)),
            If(Binary("lt", i, Int(2)), (Store("y", (i,), twice),)),
            Accumulate("y", (i,), "add", twice),
        ),
    )
    check(target, (field("x", N), state("y", N)), body)


def test_register_buffer_with_scalar_and_vector_access(target: Target) -> None:
    """A vector is written to registers and its lanes are added one by one."""
    i = Var("i")
    body = (
        loop(
            "i",
            N,
            lanes("lane", 8, Store("r", (Int(0), Var("lane")), Load("x", (i, Var("lane"))))),
            Store("s", (i,), Float(0.0)),
            unrolled("k", 8, Accumulate("s", (i,), "add", Load("r", (Int(0), Var("k"))))),
        ),
    )
    check(target, (field("x", N, 8), state("s", N), register("r", 1, 8)), body)


def test_empty_loops(target: Target) -> None:
    body = (
        Store("y", (Int(0),), Float(1.0)),
        loop("i", 0, Store("y", (Int(0),), Float(2.0))),
        loop("j", Binary("sub", N, Int(9)), Store("y", (Int(0),), Float(3.0))),
        unrolled("k", 0, Store("y", (Int(0),), Float(4.0))),
    )
    check(target, (state("y", 1),), body)


def test_extents_that_are_sizes(target: Target) -> None:
    """Strides that are known only at run time."""
    i, j = Var("i"), Var("j")
    body = (loop("i", N, loop("j", N, Store("y", (j, Int(1), i), Load("x", (i, j))))),)
    check(target, (field("x", N, N, align=4), state("y", N, 2, N, align=4)), body, n=6)
