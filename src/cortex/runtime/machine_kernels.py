"""Programs of ILIR that do one thing each as fast as the machine can: multiply-add, read, broadcast."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cortex.codegen.llvm.build import build
from cortex.codegen.load import load
from cortex.codegen.target import Target
from cortex.ilir.ir import Accumulate, Buffer, For, Func, LoopKind, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Int, Load, Var

Kernel = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32], int, int], None]
READ_UNROLL = 8


def accumulators(target: Target) -> int:
    """How many vector registers the multiply-adds go to: enough to hide their latency, few enough not to spill."""
    return 3 * target.registers // 4


def multiply_add(target: Target, count: int | None = None) -> Func:
    """rounds times: acc[a, v] += x[0, v] * x[1, v], for `count` (or the best number of) accumulators a, all lanes v.

    The accumulators start from memory: if they started equal, LLVM would keep only one of them.
    """
    a, v = Var("a"), Var("v")
    product = Binary("mul", Load("x", (Int(0), v)), Load("x", (Int(1), v)))
    sums = accumulators(target) if count is None else count
    body = _over_registers(sums, target.lanes, Accumulate("acc", (a, v), "add", product))
    x = Buffer("x", "f32", (Int(2), Int(target.lanes)), Scope.PARAM)
    return _with_accumulators("multiply_add", sums, target, x, For("r", Int(0), Var("rounds"), (body,)))


def read(target: Target) -> Func:
    """rounds times: acc[a, v] += x[i, a, v], for all i < rows."""
    a, v = Var("a"), Var("v")
    add = Accumulate("acc", (a, v), "add", Load("x", (Var("i"), a, v)))
    body = _over_registers(READ_UNROLL, target.lanes, add)
    x = Buffer("x", "f32", (Var("rows"), Int(READ_UNROLL), Int(target.lanes)), Scope.PARAM)
    rows = For("i", Int(0), Var("rows"), (body,))
    return _with_accumulators("read", READ_UNROLL, target, x, For("r", Int(0), Var("rounds"), (rows,)))


def broadcast(target: Target) -> Func:
    """rounds times: acc[a, v] += x[i, a], for all i < rows."""
    a, v = Var("a"), Var("v")
    body = _over_registers(READ_UNROLL, target.lanes, Accumulate("acc", (a, v), "add", Load("x", (Var("i"), a))))
    x = Buffer("x", "f32", (Var("rows"), Int(READ_UNROLL)), Scope.PARAM)
    rows = For("i", Int(0), Var("rows"), (body,))
    return _with_accumulators("broadcast", READ_UNROLL, target, x, For("r", Int(0), Var("rounds"), (rows,)))


@lru_cache(maxsize=8)
def kernel(f: Func, target: Target) -> Kernel:
    """`f` compiled: call it with x, the accumulators' memory, rounds and rows."""
    built = build(f, target)
    code = load(built.code, built.entry)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address)

    def run(x: npt.NDArray[np.float32], out: npt.NDArray[np.float32], rounds: int, rows: int) -> None:
        assert code.address  # keeps the code alive as long as `run`
        arrays = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
        sizes = (ctypes.c_int64 * 3)(rounds, rows, 0)  # nobody stops it
        function(ctypes.addressof(arrays), ctypes.addressof(sizes))

    return run


def aligned(elements: int) -> npt.NDArray[np.float32]:
    """Small floats at an address that suits every vector load."""
    raw = np.full(elements + 16, 1e-3, np.float32)
    start = (-raw.ctypes.data % 64) // 4
    return raw[start : start + elements]


def _with_accumulators(name: str, count: int, target: Target, x: Buffer, loop: For) -> Func:
    shape: tuple[Expr, ...] = (Int(count), Int(target.lanes))
    into = Store("acc", (Var("a_in"), Var("v_in")), Load("out", (Var("a_in"), Var("v_in"))))
    back = Store("out", (Var("a_out"), Var("v_out")), Load("acc", (Var("a_out"), Var("v_out"))))
    return Func(
        name,
        ("rounds", "rows"),
        (),
        (x, Buffer("out", "f32", shape, Scope.SCRATCH), Buffer("acc", "f32", shape, Scope.REGISTER)),
        (
            _over_registers(count, target.lanes, into, "_in"),
            loop,
            _over_registers(count, target.lanes, back, "_out"),
        ),
    )


def _over_registers(count: int, lanes: int, body: Stmt, suffix: str = "") -> For:
    vector = For(f"v{suffix}", Int(0), Int(lanes), (body,), LoopKind.VECTORIZED)
    return For(f"a{suffix}", Int(0), Int(count), (vector,), LoopKind.UNROLLED)
