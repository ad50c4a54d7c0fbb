"""The targets that can run here, and a register tile written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cortex.codegen.target import Target
from cortex.ilir.ir import Accumulate, Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var


def _targets() -> dict[str, Target]:
    host = Target.host()
    reduced = {level: Target.x86(level) for level in ("avx2", "sse2") if host.has(level)}
    return {"host": host} | reduced


@pytest.fixture(params=_targets().values(), ids=_targets().keys())
def target(request: pytest.FixtureRequest) -> Target:
    result: Target = request.param
    return result


def _loop(var: str, extent: int, *body: Stmt, kind: LoopKind = LoopKind.UNROLLED) -> For:
    return For(var, Int(0), Int(extent), body, kind)


@pytest.fixture
def tile() -> Callable[..., Func]:
    """`tile(rows, vectors, lanes, depth, unroll)`: C = A W^T for panels of packed columns, K unrolled by `unroll`."""

    def build(rows: int, vectors: int, lanes: int, depth: int, unroll: int = 1) -> Func:
        def each(tag: str, element: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
            r, j, lane = (Var(f"{name}_{tag}") for name in ("r", "j", "l"))
            inner = _loop(lane.name, lanes, element(r, j, lane), kind=LoopKind.VECTORIZED)
            return _loop(r.name, rows, _loop(j.name, vectors, inner))

        def column(j: Expr, lane: Expr) -> Expr:
            panel = Binary("mul", Var("p"), Int(vectors * lanes))
            return Binary("add", panel, Binary("add", Binary("mul", j, Int(lanes)), lane))

        def product(k: Expr) -> Stmt:
            return each(
                "k",
                lambda r, j, lane: Accumulate(
                    "acc", (r, j, lane), "add", Binary("mul", Load("A", (r, k)), Load("W", (Var("p"), k, j, lane)))
                ),
            )

        if unroll == 1:
            over_k = _loop("k", depth, product(Var("k")), kind=LoopKind.SERIAL)
        else:
            k = Binary("add", Binary("mul", Var("ko"), Int(unroll)), Var("ki"))
            over_k = _loop("ko", depth // unroll, _loop("ki", unroll, product(k)), kind=LoopKind.SERIAL)
        columns = Binary("mul", Var("panels"), Int(vectors * lanes))
        body = (
            each("zero", lambda r, j, lane: Store("acc", (r, j, lane), Float(0.0))),
            over_k,
            each("out", lambda r, j, lane: Store("C", (r, column(j, lane)), Load("acc", (r, j, lane)))),
        )
        return Func(
            f"tile_{rows}x{vectors}",
            ("panels",),
            (),
            (
                Buffer("A", "f32", (Int(rows), Int(depth)), Scope.FIELD, lanes),
                Buffer("W", "f32", (Var("panels"), Int(depth), Int(vectors), Int(lanes)), Scope.FIELD),
                Buffer("C", "f32", (Int(rows), columns), Scope.STATE, lanes),
                Buffer("acc", "f32", (Int(rows), Int(vectors), Int(lanes)), Scope.REGISTER),
            ),
            (For("p", Int(0), Var("panels"), body),),
        )

    return build
