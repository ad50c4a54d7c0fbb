"""Stream: results past the caches, only where that is possible, with the same numbers wherever the result lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cortex.codegen.llvm.build import assembly
from cortex.codegen.llvm.module import module_text
from cortex.codegen.target import Target
from cortex.errors import InternalError, ScheduleError
from cortex.ilir.ir import Func, Store
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.scalar import Int, Load
from cortex.primitives.compiled import finished, schedule_of
from cortex.primitives.product import Product, lower
from cortex.primitives.variants import Variant
from cortex.runtime.kernel import Kernel
from cortex.schedule.stream import Stream

AVX512 = Target.x86("avx512")


def tiled(columns: int = 64, streams: bool = True, threads: int = 1, target: Target = AVX512) -> Func:
    f = lower(Product(28, columns, 8))
    return finished(f, schedule_of(f, Variant(7, 2, shared="rows"), target, threads, False, streams))


def test_legal() -> None:
    f = tiled(streams=False)
    new = Stream("y").apply(f)
    verify(new)
    assert [b.name for b in new.buffers if b.streamed] == ["y"]
    assert show(new) == show(f).replace("state y[28, 64] f32", "state y[28, 64] f32, streamed")
    assert repr(Stream("y")) == "Stream(buffer='y')"


@pytest.mark.parametrize(
    ("f", "name", "reason"),
    [
        (tiled(), "x", "is not a state"),
        (tiled(), "none", "is not a state"),
        (lower(Product(28, 64, 8)), "y", "is not written in whole vectors"),
        (tiled(72, streams=False), "y", "is not written in whole vectors"),
    ],
    ids=["field", "unknown", "scalars", "rest"],
)
def test_refused(f: Func, name: str, reason: str) -> None:
    before = show(f)
    with pytest.raises(ScheduleError, match=reason):
        Stream(name).apply(f)
    assert show(f) == before


def test_what_is_read_is_not_streamed() -> None:
    f = tiled(streams=False)
    reads = replace(f, body=(*f.body, Store("y", (Int(0), Int(0)), Load("y", (Int(1), Int(0))))))
    with pytest.raises(ScheduleError, match="the program reads 'y'"):
        Stream("y").apply(reads)
    streamed = replace(reads, buffers=tuple(replace(b, streamed=b.name == "y") for b in f.buffers))
    with pytest.raises(InternalError, match="more than a state to write"):
        verify(streamed)


def test_code_has_a_body_for_results_that_begin_anywhere() -> None:
    text = assembly(module_text(tiled(), AVX512), AVX512)
    plain, streamed = text.split("product.streamed:")
    assert "vmovntps" in streamed and "vmovntps" not in plain
    assert "vmovups" in plain
    assert "vmovntps" not in assembly(module_text(tiled(streams=False), AVX512), AVX512)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("offset", [0, 1, 4])
def test_the_same_numbers_wherever_the_result_lies(offset: int, threads: int) -> None:
    made, target = np.random.default_rng(0), Target.host()
    x, w = made.standard_normal((28, 8), np.float32), made.standard_normal((64, 8), np.float32)
    kernel = Kernel(tiled(threads=threads, target=target), target, {"w": w})
    memory = np.full(28 * 64 + 32, np.nan, np.float32)
    start = (-memory.ctypes.data % 64) // 4 + offset
    out = memory[start : start + 28 * 64].reshape(28, 64)
    for _ in range(20):
        out[:] = np.nan
        kernel.run((x,), out, (28, 64), threads)
        np.testing.assert_allclose(out, x @ w.T, atol=1e-5)
    rest = np.delete(memory, np.s_[start : start + 28 * 64])
    assert np.isnan(rest).all()
