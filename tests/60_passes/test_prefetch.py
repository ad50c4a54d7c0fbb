"""What a tile uses after its sums is asked for before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cortex.ilir.interp import run
from cortex.ilir.ir import (
    Accumulate,
    Buffer,
    Case,
    For,
    Func,
    IndexFunction,
    Let,
    LoopKind,
    Prefetch,
    Scope,
    Store,
    Switch,
)
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Float, Index, Int, Load, Var
from cortex.passes.prefetch import prefetch

ROWS, LANES, DEPTH = 2, 4, 3


def tile() -> Func:
    """y[n] = (sum over k of x[n, k] * w[k]) + old[child(n)] + bias, two rows at a time."""
    s, v, j, lane_of_sum, k = (Var(name) for name in ("s", "v", "j", "lane_of_sum", "k"))
    acc = For("s", Int(0), Int(ROWS), (For("lane_of_sum", Int(0), Int(LANES), (
        Accumulate("acc", (s, lane_of_sum), "add", Binary("mul", Load("x", (s, k)), Load("w", (k, lane_of_sum)))),
    ), LoopKind.VECTORIZED),), LoopKind.UNROLLED)  # fmt: skip
    begin = For("v", Int(0), Int(ROWS), (For("j", Int(0), Int(LANES), (
        Store("acc", (v, j), Float(0.0)),
    ), LoopKind.VECTORIZED),), LoopKind.UNROLLED)  # fmt: skip
    row, lane, child = Var("row"), Var("lane"), Var("child_of_row")
    rest = For("row", Int(0), Var("rows"), (For("lane", Int(0), Int(LANES), (
        Let(child, Index("child", (row,))),
        Store("y", (row, lane), Binary("add", Load("acc", (row, lane)),
                                       Binary("add", Load("old", (child, lane)), Load("bias", (lane,))))),
    ), LoopKind.VECTORIZED),))  # fmt: skip
    body = (
        Let(Var("rows"), Int(ROWS)),
        Switch(Var("rows"), (Case(ROWS, (begin, For("k", Int(0), Int(DEPTH), (acc,)))),)),
        rest,
    )
    buffers = (
        Buffer("x", "f32", (Int(ROWS), Int(DEPTH)), Scope.FIELD),
        Buffer("w", "f32", (Int(DEPTH), Int(LANES)), Scope.PARAM),
        Buffer("bias", "f32", (Int(LANES),), Scope.PARAM),
        Buffer("old", "f32", (Int(5), Int(LANES)), Scope.FIELD),
        Buffer("acc", "f32", (Int(ROWS), Int(LANES)), Scope.PRIVATE),
        Buffer("y", "f32", (Int(ROWS), Int(LANES)), Scope.STATE),
    )
    return Func("tile", (), (IndexFunction("child", Int(ROWS), ("non_negative",), Int(5)),), buffers, body)


def asked(f: Func) -> list[tuple[str, str]]:
    return [(n.buffer, n.to) for n in walk(prefetch(f)) if isinstance(n, Prefetch)]


def test_rows_are_asked_for_before_the_sums(golden: Callable[[str, str], None]) -> None:
    f = tile()
    g = prefetch(f)
    verify(g)
    golden("passes/prefetch_tile", f"-- before --\n{show(f)}\n-- after --\n{show(g)}")
    rng = np.random.default_rng(0)
    given = {b.name: rng.standard_normal([e.value for e in b.shape if isinstance(e, Int)]) for b in f.buffers[:4]}
    child = np.array([3, 1])
    got = run(g, {}, {"child": child}, given).buffers["y"]
    np.testing.assert_allclose(got, given["x"] @ given["w"] + given["old"][child] + given["bias"], rtol=1e-6)


def test_what_is_near_or_written_past_the_caches_is_not_asked_for() -> None:
    f = tile()
    assert asked(f) == [("old", "read"), ("y", "write")]
    streamed = replace(f, buffers=tuple(replace(b, streamed=b.name == "y") for b in f.buffers))
    assert asked(streamed) == [("old", "read")]


def test_without_sums_before_it_a_loop_asks_for_nothing() -> None:
    f = tile()
    assert asked(replace(f, body=(f.body[0], f.body[2]))) == []
