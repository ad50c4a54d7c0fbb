"""The stated error bounds of exp, sigmoid, tanh and log, on every target, over all exponents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cortex.codegen.llvm.run import run
from cortex.codegen.target import Target
from cortex.ilir.ir import Buffer, For, Func, LoopKind, Scope, Store
from cortex.ir.scalar import Binary, Int, Load, Unary, UnaryFn, Var
from cortex.passes.expand_math import expand_math

Function = Callable[[np.ndarray], np.ndarray]

STRIDE = 1021  # prime, so that all mantissas' low bits occur
SPECIAL = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38], dtype=np.float32)


def arguments() -> np.ndarray:
    """4.2 million floats evenly over all bit patterns, half a million where the functions bend, special values."""
    everywhere = np.arange(0, 2**32, STRIDE, dtype=np.int64).astype(np.uint32).view(np.float32)
    bend = np.linspace(-110, 110, 2**19, dtype=np.float32)
    x = np.concatenate([everywhere, bend, SPECIAL])
    return np.concatenate([x, np.ones(-len(x) % 32, dtype=np.float32)])


X = arguments()


def exact_sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, 1.0) / (1.0 + e))


EXACT: dict[UnaryFn, Function] = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "sigmoid": exact_sigmoid}
BOUND: dict[UnaryFn, float] = {"exp": 1.0, "log": 1.0, "tanh": 3.5, "sigmoid": 3.0}
BOUND_WITHOUT_FMA = BOUND | {"exp": 1.25}


def elementwise(fn: UnaryFn, lanes: int) -> Func:
    i = Binary("add", Binary("mul", Var("b"), Int(lanes)), Var("lane"))
    inner = For("lane", Int(0), Int(lanes), (Store("y", (i,), Unary(fn, Load("x", (i,)))),), LoopKind.VECTORIZED)
    shape = (Binary("mul", Var("blocks"), Int(lanes)),)
    buffers = (Buffer("x", "f32", shape, Scope.FIELD), Buffer("y", "f32", shape, Scope.STATE))
    return Func(fn, ("blocks",), (), buffers, (For("b", Int(0), Var("blocks"), (inner,)),))


def apply(fn: UnaryFn, x: np.ndarray, target: Target, lanes: int) -> np.ndarray:
    return run(expand_math(elementwise(fn, lanes)), target, {"blocks": len(x) // lanes}, {}, {"x": x})["y"]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in units of the last place of the exact result; infinite where one is NaN or inf by mistake."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = exact.astype(np.float32)
        unit = np.spacing(np.maximum(np.abs(nearest), np.float32(2.0**-126))).astype(np.float64)
        distance = np.abs(got.astype(np.float64) - exact) / unit
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    return np.where(np.isfinite(nearest) & np.isfinite(got), distance, np.where(same, 0.0, np.inf))


def targets() -> dict[str, Target]:
    host = Target.host()
    return {"host": host} | {level: Target.x86(level) for level in ("avx2", "sse2") if host.has(level)}


@pytest.fixture(params=targets().values(), ids=targets().keys())
def target(request: pytest.FixtureRequest) -> Target:
    result: Target = request.param
    return result


@pytest.mark.parametrize("fn", EXACT)
def test_error_bound(fn: UnaryFn, target: Target) -> None:
    with np.errstate(all="ignore"):
        exact = EXACT[fn](X.astype(np.float64))
    got = apply(fn, X, target, target.lanes)
    error = ulps(got, exact)
    if fn == "sigmoid":  # exp(-x) overflows: the bound is absolute there
        low = X < -88.7
        assert np.all((got[low] >= 0) & (got[low] < 2.0**-126))
        error = error[~low]
    assert error.max() <= (BOUND if target.has_fma else BOUND_WITHOUT_FMA)[fn]


@pytest.mark.parametrize("fn", EXACT)
def test_one_by_one_gives_the_same_bits_as_vectors(fn: UnaryFn, target: Target) -> None:
    some = np.ascontiguousarray(X[::257][: 4096 * 4])
    some = np.concatenate([some, SPECIAL, np.ones(-(len(some) + len(SPECIAL)) % 32, dtype=np.float32)])
    whole = apply(fn, some, target, target.lanes)
    for lanes in (1, 2, 2 * target.lanes):
        np.testing.assert_array_equal(apply(fn, some, target, lanes), whole)


def test_limits(target: Target) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 88.72283, 88.72284, -103.9, -104.5, 1e38, -1e38, 1.0] + [0.5] * 4)
    x = x.astype(np.float32)
    inf, nan = np.inf, np.nan
    exp, tanh, sigmoid = (apply(fn, x, target, 4) for fn in ("exp", "tanh", "sigmoid"))
    np.testing.assert_array_equal(exp[:5], [inf, 0, nan, 1, 1])
    assert np.isfinite(exp[5]) and exp[6] == inf and exp[7] > 0 and exp[8] == 0
    np.testing.assert_array_equal(exp[9:11], [inf, 0])
    np.testing.assert_array_equal(tanh[:5], [1, -1, nan, 0, -0.0])
    np.testing.assert_array_equal(np.signbit(tanh[3:5]), [False, True])
    np.testing.assert_array_equal(tanh[9:11], [1, -1])
    np.testing.assert_array_equal(sigmoid[:5], [1, 0, nan, 0.5, 0.5])
    np.testing.assert_array_equal(sigmoid[9:11], [1, 0])
    log = apply("log", np.array([0, -0.0, -1, inf, nan, 1, 1e-45, -inf], dtype=np.float32), target, 4)
    np.testing.assert_allclose(log, [-inf, -inf, nan, inf, nan, 0, np.log(2.0**-149), nan], rtol=1e-7)


def test_tanh_is_odd_and_bounded(target: Target) -> None:
    x = np.abs(X[np.isfinite(X)])
    x = x[: len(x) // 32 * 32]
    positive, negative = apply("tanh", x, target, target.lanes), apply("tanh", -x, target, target.lanes)
    np.testing.assert_array_equal(positive, -negative)
    assert positive.max() == 1.0
