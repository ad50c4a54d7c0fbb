"""The interpreter against NumPy, and what it counts, checks and makes of special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cortex.errors import InternalError
from cortex.ilir.interp import Result, run
from cortex.ilir.ir import (
    Accumulate,
    Buffer,
    Case,
    For,
    Func,
    If,
    IndexFunction,
    Let,
    PackedGate,
    Packing,
    Scope,
    Stmt,
    Store,
    Switch,
)
from cortex.ilir.pack import pack
from cortex.ilir.verify import verify
from cortex.ir.scalar import Binary, Cast, Expr, Float, Fma, Index, Int, Load, Select, Unary, Var

i, n = Var("i"), Var("n")


def run_program(p: Any, **options: bool) -> Result:
    return run(p.func, p.sizes, p.index, p.buffers, **options)


def over(*body: Stmt, size: int = 4, **arrays: Any) -> Any:
    """`out` after running `body` with buffers `arrays`, index function `f` if given, and size n."""
    index = {name: arrays.pop(name) for name in ("f",) if name in arrays}
    params = tuple(Buffer(k, "f32", tuple(map(Int, np.shape(a))), Scope.PARAM) for k, a in arrays.items())
    functions = (IndexFunction("f", n),)
    f = Func("over", ("n",), functions, (*params, Buffer("out", "f32", (n,), Scope.STATE)), body)
    verify(f)
    return run(f, {"n": size}, index, arrays).buffers["out"]


def loop(*body: Stmt, hi: Expr = n) -> For:
    return For("i", Int(0), hi, body)


@pytest.mark.parametrize("check_bounds", [True, False])
def test_tree_rnn(tree_rnn: Any, check_bounds: bool) -> None:
    h = run_program(tree_rnn, check_bounds=check_bounds).buffers["h"]
    assert h.shape == (5, 4) and h.dtype == np.float64
    np.testing.assert_allclose(h, tree_rnn.expected["h"], rtol=1e-12)


def test_gated_product_from_packed_weights(gated: Any) -> None:
    np.testing.assert_allclose(run_program(gated).buffers["y"], gated.expected["y"], rtol=1e-12)


def test_tree_rnn_counts(tree_rnn: Any) -> None:
    leaves, inner, hidden = 3, 2, 4
    c = run_program(tree_rnn).counts
    assert c.flops == {"add": inner * (hidden + hidden**2), "mul": inner * hidden**2, "tanh": inner * hidden}
    assert c.loads == {
        "emb": leaves * hidden, "b": inner * hidden, "h": inner * 2 * hidden,
        "W": inner * hidden**2, "acc": inner * (hidden**2 + hidden),
    }  # fmt: skip
    assert c.stores == {"h": 5 * hidden, "acc": inner * (hidden + hidden**2)}
    assert c.index_reads == {
        "group_kind": 3, "group_start": 2 * 3, "group_len": 3,
        "field_word": leaves * hidden, "child_left": inner, "child_right": inner,
    }  # fmt: skip
    assert c.barriers == 3


def test_gated_counts(gated: Any) -> None:
    panels, rows, depth, gates, width = 2, 7, 3, 2, 4
    c = run_program(gated).counts
    tiles = panels * rows * width
    assert c.flops == {"mul": tiles * (depth * gates + 1), "add": tiles * depth * gates, "sigmoid": tiles}
    assert c.loads["Wp"] == c.loads["x"] == tiles * depth * gates
    assert c.stores["y"] == tiles


def test_fused_or_not_counts_the_same() -> None:
    buffers = (Buffer("x", "f32", (n,), Scope.PARAM), Buffer("out", "f32", (n,), Scope.STATE))
    x, out = Load("x", (i,)), Load("out", (i,))
    fused = Func("f", ("n",), (), buffers, (loop(Store("out", (i,), Fma(x, x, out))),))
    accumulated = Func("f", ("n",), (), buffers, (loop(Accumulate("out", (i,), "add", Binary("mul", x, x))),))
    data = {"x": np.ones(3)}
    assert run(fused, {"n": 3}, {}, data).counts == run(accumulated, {"n": 3}, {}, data).counts


def test_empty_loops_run_and_count_nothing() -> None:
    f = Func("f", ("n",), (), (Buffer("out", "f32", (n,), Scope.STATE),), (
        For("i", n, Int(0), (Store("out", (Int(0),), Float(1.0)),)),
    ))  # fmt: skip
    r = run(f, {"n": 2}, {}, {})
    assert r.counts.stores == {} and np.isnan(r.buffers["out"]).all()


def test_out_of_bounds_names_element_and_loops(tree_rnn: Any) -> None:
    broken = tree_rnn.index | {"child_right": np.array([7, 3, -1, -1, -1])}
    with pytest.raises(InternalError, match=r"^h\[7, 0\] is out of bounds of \(5, 8\), at g = 2, m = 0, k = 0$"):
        run(tree_rnn.func, tree_rnn.sizes, broken, tree_rnn.buffers)
    negative = tree_rnn.index | {"child_left": np.array([-1, 2, -1, -1, -1])}
    with pytest.raises(InternalError, match=r"^h\[-1, 0\] is out of bounds"):
        run(tree_rnn.func, tree_rnn.sizes, negative, tree_rnn.buffers)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (Store("out", (Binary("add", i, Int(1)),), Float(0.0)), r"out\[4\] is out of bounds of \(4,\), at i = 3"),
        (Accumulate("out", (Binary("sub", i, Int(1)),), "max", Float(0.0)), r"out\[-1\] .*, at i = 0"),
        (Let(Var("a"), Index("f", (Binary("mul", i, Int(2)),))), r"f\[4\] is out of bounds of \(4,\), at i = 2"),
        (Store("out", (Index("f", (i,)),), Float(0.0)), r"out\[9\] is out of bounds of \(4,\), at i = 1"),
        # Both arms of a select are evaluated.
        (
            Store("out", (i,), Select(Binary("lt", i, Int(0)), Load("out", (Int(4),)), Float(0.0))),
            r"out\[4\] .*, at i = 0",
        ),
    ],
)
def test_every_access_is_checked(statement: Stmt, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        over(loop(statement), f=np.array([0, 9, 0, 0]))


def test_constant_bounds_that_are_too_large_are_found() -> None:
    with pytest.raises(InternalError, match=r"a\[3\] is out of bounds of \(3,\), at i = 3"):
        over(loop(Store("out", (i,), Load("a", (i,))), hi=Int(4)), a=np.zeros(3))


def test_a_name_bound_again_is_checked_again() -> None:
    again = If(Binary("lt", Int(0), n), (Let(i, Index("f", (Int(0),))), Store("out", (i,), Load("a", (i,)))))
    with pytest.raises(InternalError, match=r"a\[3\] is out of bounds of \(3,\), at no loop"):
        over(loop(hi=Int(2)), again, a=np.zeros(3), f=np.array([3, 0, 0, 0]))


def test_padding_may_be_touched_and_is_not_returned() -> None:
    buffers = (Buffer("out", "f32", (n, Int(3)), Scope.STATE, 4), Buffer("t", "f32", (n,), Scope.SCRATCH, 4))
    row = For("j", Int(0), Int(4), (Store("out", (i, Var("j")), Float(1.0)),))
    r = run(Func("f", ("n",), (), buffers, (loop(row),)), {"n": 2}, {}, {})
    assert r.buffers["out"].tolist() == [[1.0] * 3] * 2
    assert r.buffers["t"].shape == (2,)
    run(Func("f", ("n",), (), buffers, (Store("t", (Int(3),), Float(0.0)),)), {"n": 2}, {}, {})
    with pytest.raises(InternalError, match=r"t\[4\] is out of bounds of \(4,\)"):
        run(Func("f", ("n",), (), buffers, (Store("t", (Int(4),), Float(0.0)),)), {"n": 2}, {}, {})


def test_unwritten_elements_surface_as_nan() -> None:
    out = over(loop(If(Binary("ne", i, Int(2)), (Store("out", (i,), Float(1.0)),))), f=np.zeros(4))
    assert np.isnan(out).tolist() == [False, False, True, False]
    assert np.isnan(over(Accumulate("out", (Int(0),), "add", Float(1.0)))[0])


@pytest.mark.parametrize("by", [-1, 0, 1, 2, 3])
def test_a_turned_loop_runs_down_where_it_is_odd(by: int) -> None:
    """Iterations of a turned loop are independent; these are not, so that the order is seen."""
    clock = Load("out", (Int(0),))
    body = (Accumulate("out", (Int(0),), "add", Float(1.0)), Store("out", (i,), clock))
    down = over(Store("out", (Int(0),), Float(0.0)), For("i", Int(1), n, body, turned=Int(by)))
    assert down.tolist() == ([3, 3, 2, 1] if by % 2 else [3, 1, 2, 3])


def test_a_turned_loop_counts_the_same() -> None:
    def counts(turned: Expr | None) -> Any:
        body = For("i", Int(0), n, (Store("out", (i,), Float(1.0)),), turned=turned)
        return run(Func("f", ("n",), (), (Buffer("out", "f32", (n,), Scope.STATE),), (body,)), {"n": 3}, {}, {}).counts

    assert counts(n) == counts(None)


def test_switch_if_and_let() -> None:
    a = Var("a", "f32")
    body = loop(
        Let(a, Cast(i, "f32")),
        Store("out", (i,), Float(-1.0)),
        Switch(Binary("mod", i, Int(3)), (
            Case(1, (Let(Var("b", "f32"), Binary("mul", a, Float(10.0))), Store("out", (i,), Var("b", "f32")))),
            Case(2, (If(Binary("lt", i, Int(3)), (Store("out", (i,), Float(0.5)),), (Store("out", (i,), a),)),)),
        )),
    )  # fmt: skip
    assert over(body, size=6).tolist() == [-1.0, 10.0, 0.5, -1.0, 40.0, 5.0]


def test_bounds_are_read_once() -> None:
    count = Buffer("count", "i64", (Int(1),), Scope.SCRATCH)
    at = Load("count", (Int(0),), "i64")
    body = (
        Store("count", (Int(0),), Int(3)),
        For("i", Int(0), at, (Accumulate("count", (Int(0),), "add", Int(1)),)),
    )
    assert run(Func("f", (), (), (count,), body), {}, {}, {}).buffers["count"].tolist() == [6]


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("fn", "x", "expected"),
    [
        ("exp", 1000.0, INF), ("exp", -INF, 0.0), ("exp", NAN, NAN),
        ("log", 0.0, -INF), ("log", -1.0, NAN), ("log", INF, INF), ("log", NAN, NAN),
        ("sqrt", -1.0, NAN), ("sqrt", INF, INF), ("tanh", -INF, -1.0), ("tanh", NAN, NAN),
        ("sigmoid", -1000.0, 0.0), ("sigmoid", 1000.0, 1.0), ("sigmoid", NAN, NAN), ("sigmoid", 0.0, 0.5),
        ("round", 2.5, 2.0), ("round", 3.5, 4.0), ("round", -0.25, -0.0), ("round", NAN, NAN), ("round", INF, INF),
        ("abs", -3.0, 3.0), ("neg", 0.0, -0.0),
    ],
)  # fmt: skip
def test_unary_values(fn: Any, x: float, expected: float) -> None:
    np.testing.assert_equal(over(Store("out", (Int(0),), Unary(fn, Load("x", (Int(0),)))), x=[x])[0], expected)


@pytest.mark.parametrize(
    ("fn", "x", "y", "expected"),
    [
        ("div", 1.0, 0.0, INF), ("div", 1.0, -0.0, -INF), ("div", 0.0, 0.0, NAN), ("div", NAN, 0.0, NAN),
        ("min", NAN, 1.0, NAN), ("min", 1.0, NAN, NAN), ("max", NAN, 1.0, NAN), ("max", 1.0, NAN, NAN),
        ("min", 2.0, 1.0, 1.0), ("max", 2.0, 1.0, 2.0), ("sub", INF, INF, NAN), ("mul", 1e308, 10.0, INF),
        ("copysign", 2.0, -0.0, -2.0), ("ldexp", 3.0, 4.0, 48.0), ("ldexp", -1.0, 5000.0, -INF),
        ("ldexp", 1.0, NAN, NAN), ("ldexp", 1.0, INF, INF),
    ],
)  # fmt: skip
def test_binary_values(fn: Any, x: float, y: float, expected: float) -> None:
    value = Binary(fn, Load("x", (Int(0),)), Load("x", (Int(1),)))
    np.testing.assert_equal(over(Store("out", (Int(0),), value), x=[x, y])[0], expected)


def test_accumulated_maximum_propagates_nan() -> None:
    body = (
        Store("out", (Int(0),), Load("x", (Int(0),))),
        For("i", Int(0), Int(3), (Accumulate("out", (Int(0),), "max", Load("x", (i,))),)),
    )
    np.testing.assert_equal(over(*body, x=[1.0, NAN, 3.0])[0], NAN)
    np.testing.assert_equal(over(*body, x=[1.0, 5.0, 3.0])[0], 5.0)


def test_casts_and_constants() -> None:
    less = Binary("lt", Load("x", (Int(0),)), Float(0.0))
    body = (
        Store("out", (Int(0),), Cast(Cast(Load("x", (Int(0),)), "i64"), "f32")),
        Store("out", (Int(1),), Cast(less, "f32")),
        Store("out", (Int(2),), Cast(Cast(Int(0), "bool"), "f32")),
        Store("out", (Int(3),), Float(-INF)),
    )
    assert over(*body, x=[-2.75]).tolist() == [-2.0, 1.0, 0.0, -INF]


def test_names_need_not_be_identifiers() -> None:
    buffers = (Buffer("cell.W", "f32", (Int(1),), Scope.PARAM), Buffer("0", "f32", (Int(1),), Scope.STATE))
    body = (For("for", Int(0), Int(1), (Store("0", (Var("for"),), Load("cell.W", (Var("for"),))),)),)
    assert run(Func("f", (), (), buffers, body), {}, {}, {"cell.W": np.array([4.0])}).buffers["0"].tolist() == [4.0]


def test_inputs_are_checked(tree_rnn: Any, gated: Any) -> None:
    with pytest.raises(InternalError, match="no array was given for param buffer 'V'"):
        run(gated.func, gated.sizes, {}, {k: v for k, v in gated.buffers.items() if k != "V"})
    f, sizes, index, buffers = tree_rnn.func, tree_rnn.sizes, tree_rnn.index, tree_rnn.buffers
    with pytest.raises(InternalError, match="no array was given for index function 'child_left'"):
        run(f, sizes, {k: v for k, v in index.items() if k != "child_left"}, buffers)
    with pytest.raises(InternalError, match=r"'child_left' needs 5 values, its array has shape \(2,\)"):
        run(f, sizes, index | {"child_left": np.zeros(2)}, buffers)
    with pytest.raises(InternalError, match="no array was given for param buffer 'W'"):
        run(f, sizes, index, {k: v for k, v in buffers.items() if k != "W"})
    with pytest.raises(InternalError, match=r"param buffer 'b' has shape \(4,\), the array given has \(3,\)"):
        run(f, sizes, index, buffers | {"b": np.zeros(3)})
    with pytest.raises(InternalError, match="divides an integer by zero"):
        over(Let(Var("a"), Binary("mod", n, Binary("sub", n, n))))


def test_pack_with_outer_dimensions() -> None:
    w = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    gates = (PackedGate("w", (Var("o0"), Var("j"), Var("k"))), PackedGate("w", (Int(0), Int(1), Var("k"))))
    p = pack(Packing("wp", (2,), 3, 4, 2, gates), {"w": w})
    assert p.shape == (2, 2, 4, 2, 2) and p.dtype == np.float32
    for o, j, k in np.ndindex(2, 4, 4):
        lane = p[o, j // 2, k, :, j % 2]
        assert lane.tolist() == ([w[o, j, k], w[0, 1, k]] if j < 3 else [0.0, 0.0])
    with pytest.raises(InternalError, match="packing of 'wp' reads 'w' out of bounds"):
        pack(Packing("wp", (2,), 3, 5, 2, gates), {"w": w})
