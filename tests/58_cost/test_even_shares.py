"""Threads get even shares of columns: by the width of tiles, and by the width that all nests share out."""

from __future__ import annotations

import numpy as np
import pytest

from cortex.cost.machine import Machine
from cortex.cost.tiles import Tiles
from cortex.ilir.ir import Accumulate, Buffer, For, Func, If, Scope, Stmt, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var
from cortex.schedule.parallel import Parallel
from cortex.schedule.parallel_default import parallel_schedule
from cortex.schedule.registers import AS_REGISTERS_ALLOW, Registers, SumsNest


@pytest.mark.parametrize("columns", [128, 192, 256, 320, 384, 448, 512, 640])
@pytest.mark.parametrize("threads", [2, 4])
def test_blocks_of_tiles_divide_among_threads(columns: int, threads: int) -> None:
    m = Machine.example()
    nest = SumsNest("n", 1, 1, 1, columns, columns, None)
    tiles = Tiles(m, {"n": np.array([20, 10, 5, 2, 1])}, {"n": 4.0 * columns**2}, threads)
    _, vectors = Registers(m.registers, m.lanes, m.broadcasts).tile(1, 1, columns, tiles(nest))
    blocks = columns // (vectors * m.lanes)  # what is left is a nest of its own, and shared out by rows
    assert -(-blocks // threads) * threads / blocks < 1.15


def test_too_few_blocks_are_not_shared_out() -> None:
    m = Machine.example()
    nest = SumsNest("n", 1, 1, 1, 64, 64, None)

    def ns(threads: int, rows: int) -> float:
        tiles = Tiles(m, {"n": np.array([rows])}, {"n": 4.0 * 64**2}, threads)
        return tiles.ns(nest, AS_REGISTERS_ALLOW, np.array([rows]))

    assert ns(8, 1) == ns(1, 1)  # one row, and fewer blocks of columns than threads
    assert ns(8, 600) == pytest.approx(ns(1, 600) / 8, rel=0.1)  # rows are shared out


def product(name: str, width: int) -> For:
    """h[n, j] = sum over k of x[n, k] * w[j, k], in blocks of `width` of 384 columns."""
    n, block, lane, k = Var(f"{name}_n"), Var(f"{name}_o"), Var(f"{name}_l"), Var(f"{name}_k")
    at: tuple[Expr, ...] = (n, Binary("add", Binary("mul", block, Int(width)), lane))
    term = Binary("mul", Load("x", (n, k)), Load("w", (at[1], k)))
    sums = For(k.name, Int(0), Int(384), (Accumulate(name, at, "add", term),))
    element: tuple[Stmt, ...] = (Store(name, at, Float(0.0)), sums)
    rows = For(n.name, Int(0), Var("num_nodes"), (For(lane.name, Int(0), Int(width), element),))
    return For(block.name, Int(0), Int(384 // width), (rows,))


def steps(*nests: For) -> tuple[object, ...]:
    rows, width = Var("num_nodes"), Int(384)
    names = [s.buffer for nest in nests for s in walk(nest) if isinstance(s, Store)]
    buffers = [Buffer(name, "f32", (rows, width), Scope.STATE) for name in names]
    given = [Buffer("x", "f32", (rows, width), Scope.FIELD), Buffer("w", "f32", (width, width), Scope.PARAM)]
    groups = For("g", Int(0), Var("num_groups"), (If(Binary("eq", Var("g"), Int(0)), nests),))
    f = Func("f", ("num_nodes", "num_groups"), (), (*given, *buffers), (groups,))
    return parallel_schedule(f, 2)


def test_the_common_width_is_even() -> None:
    found = steps(product("a", 128), product("b", 64), product("c", 16))
    assert {Parallel("a_o"), Parallel("b_o"), Parallel("c_o", 4)} <= set(found)


def test_the_common_width_is_the_widest_where_all_are_even() -> None:
    found = steps(product("a", 96), product("b", 48), product("c", 16))
    assert {Parallel("a_o"), Parallel("b_o", 2), Parallel("c_o", 6)} <= set(found)
