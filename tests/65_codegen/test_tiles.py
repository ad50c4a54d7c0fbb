"""Register tiles: right numbers on every target, the same bits for every tile, and no stack traffic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from assembly_kernels import kernels, spills

from cortex.codegen.llvm.build import build
from cortex.codegen.llvm.run import run
from cortex.codegen.target import Target
from cortex.ilir.ir import Func

Tile = Callable[..., Func]

on_x86 = pytest.mark.skipif(not Target.host().triple.startswith("x86_64"), reason="LLVM has only the native back end")


def product(f: Func, target: Target, a: np.ndarray, w: np.ndarray) -> np.ndarray:
    return run(f, target, {"panels": len(w)}, {}, {"A": a, "W": w})["C"]


@pytest.mark.parametrize("rows", range(1, 7))
def test_product(rows: int, tile: Tile, target: Target) -> None:
    random = np.random.default_rng(rows)
    depth, lanes = 24, target.lanes
    a = random.standard_normal((rows, depth), dtype=np.float32)
    w = random.standard_normal((3, depth, 4, lanes), dtype=np.float32)
    c = product(tile(rows, 4, lanes, depth), target, a, w)
    exact = np.einsum("rk,pkjl->rpjl", a.astype(np.float64), w.astype(np.float64)).reshape(rows, -1)
    np.testing.assert_allclose(c, exact, rtol=0, atol=1e-5)


def test_bits_do_not_depend_on_the_tile(tile: Tile, target: Target) -> None:
    """Each element is accumulated over K in one order, whatever the rows, the unrolling and the lanes."""
    random = np.random.default_rng(0)
    depth, lanes = 40, target.lanes
    a = random.standard_normal((6, depth), dtype=np.float32)
    w = random.standard_normal((2, depth, 4, lanes), dtype=np.float32)
    whole = product(tile(6, 4, lanes, depth), target, a, w)
    for unroll in (4, 8):
        np.testing.assert_array_equal(product(tile(6, 4, lanes, depth, unroll), target, a, w), whole)
    for row in range(6):
        single = product(tile(1, 4, lanes, depth, 8), target, a[row : row + 1], w)
        np.testing.assert_array_equal(single[0], whole[row])
    narrow = w.reshape(2, depth, 4 * lanes // 2, 2)
    np.testing.assert_array_equal(product(tile(6, 2 * lanes, 2, depth), target, a, narrow), whole)


@on_x86
@pytest.mark.parametrize(("rows", "vectors"), [(6, 4), (9, 3), (14, 2)])
def test_tile_stays_in_registers(rows: int, vectors: int, tile: Tile) -> None:
    (kernel,) = kernels(build(tile(rows, vectors, 16, 256), Target.x86("avx512")).assembly())
    assert kernel.multiply_adds == rows * vectors
    assert kernel.spills == ()
    assert all("zmm" in i for i in kernel.instructions if i.startswith("vfmadd"))


@on_x86
@pytest.mark.parametrize(("rows", "unroll"), [(1, 8), (2, 8), (3, 8), (4, 4), (5, 4), (6, 4)])
def test_unrolled_tile_stays_in_registers(rows: int, unroll: int, tile: Tile) -> None:
    (kernel,) = kernels(build(tile(rows, 4, 16, 256, unroll), Target.x86("avx512")).assembly())
    assert kernel.multiply_adds == rows * 4 * unroll
    assert kernel.spills == ()


@on_x86
def test_spills_are_seen(tile: Tile) -> None:
    """8 x 4 accumulators leave no register for the operands."""
    assert spills(build(tile(8, 4, 16, 256), Target.x86("avx512")).assembly())
    assert not spills(build(tile(4, 2, 8, 64), Target.x86("avx2")).assembly())
