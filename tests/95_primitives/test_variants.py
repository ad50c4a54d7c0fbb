"""Every variant computes the same, and its register tiles stay in registers."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from assembly_kernels import kernels, spills

from cortex.bench.convolutions import RESNET50
from cortex.codegen.llvm.build import assembly
from cortex.codegen.llvm.module import module_text
from cortex.codegen.target import CPUS, Target
from cortex.cost.machine import Machine
from cortex.ilir.interp import run as interpret
from cortex.ilir.ir import Func
from cortex.ir.step import apply
from cortex.primitives.choose import Ranking
from cortex.primitives.compiled import finished, schedule_of
from cortex.primitives.convolution import Convolution, lower, weight_shape
from cortex.primitives.epilogue import Epilogue
from cortex.primitives.product import Product
from cortex.primitives.product import lower as lower_product
from cortex.primitives.variants import (
    Shape,
    Variant,
    candidates,
    name_in_program,
    program_of,
    register_tiles,
    steps,
    with_shared_loops,
)
from cortex.runtime.kernel import Kernel
from cortex.schedule.parallel import Parallel
from cortex.schedule.registers import Registers

AVX512, AVX2 = Registers(32, 16), Registers(16, 8)
CONV = Convolution(
    2, (12, 14), 5, 96, (3, 3), padding=((1, 1), (1, 1)), epilogue=Epilogue(bias=True, activation="relu")
)
GROUPED = Convolution(1, (6, 9), 8, 64, (3, 2), (2, 1), ((1, 1), (2, 0)), (1, 2), groups=2)


def reference(c: Convolution, x: np.ndarray[Any, Any], w: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    """By the definition, in double precision; w is (filters, rows, columns, channels per group)."""
    (above, below), (left, right) = c.padding
    padded = np.pad(x.astype(np.float64), ((0, 0), (above, below), (left, right), (0, 0)))
    (high, wide), depth, each = c.out, c.channels // c.groups, c.filters // c.groups
    y = np.zeros((c.batch, high, wide, c.filters))
    for r in range(c.kernel[0]):
        for s in range(c.kernel[1]):
            rows = slice(r * c.dilation[0], r * c.dilation[0] + (high - 1) * c.stride[0] + 1, c.stride[0])
            columns = slice(s * c.dilation[1], s * c.dilation[1] + (wide - 1) * c.stride[1] + 1, c.stride[1])
            for g in range(c.groups):
                seen = padded[:, rows, columns, g * depth : (g + 1) * depth]
                y[..., g * each : (g + 1) * each] += seen @ w[g * each : (g + 1) * each, r, s].T.astype(np.float64)
    y = y + b if c.epilogue.bias else y
    return np.maximum(y, 0) if c.epilogue.activation == "relu" else y


def data(c: Convolution) -> tuple[Any, Any, Any]:
    made = np.random.default_rng(0)
    x = made.standard_normal((c.batch, *c.image, c.channels), np.float32)
    w = made.standard_normal((c.filters, *c.kernel, c.channels // c.groups), np.float32)
    return x, w, made.standard_normal(c.filters, np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("c", [CONV, GROUPED], ids=["conv", "grouped"])
def test_random_variants_compute_the_same(c: Convolution, threads: int) -> None:
    x, w, b = data(c)
    wanted = reference(c, x, w, b)
    f, target = lower(c), Target.host()
    alone = candidates(f, Registers(target.registers, target.lanes))
    shapes = ((v, Shape.of(program_of(f, v))) for v in alone)
    every = [each for v, shape in shapes for each in with_shared_loops(shape, v, target.lanes, threads)]
    assert {bool(v.shared) for v in every} == {threads > 1}
    within, across = ([v for v in every if v.spans == spans] for spans in (False, True))
    drawn = random.Random(threads)
    for v in (*drawn.sample(within, 8), *drawn.sample(across, 4)):
        program = finished(f, schedule_of(f, v, target, threads, False))
        kernel = Kernel(program, target, {"w": w.reshape(weight_shape(c)), "bias": b})
        found = kernel.run((x,), None, wanted.shape, threads)
        np.testing.assert_allclose(found, wanted, atol=1e-4, err_msg=str(v))


def test_the_program_before_any_step_is_the_definition() -> None:
    c = Convolution(1, (4, 3), 2, 3, (3, 2), (1, 2), ((2, 1), (1, 0)), epilogue=Epilogue(bias=True))
    x, w, b = data(c)
    given = {"x": x.reshape(1, 4, 6), "w": w.reshape(weight_shape(c)), "bias": b}
    found = interpret(lower(c), {}, {}, given)
    np.testing.assert_allclose(found.buffers["y"], reference(c, x, w, b), atol=1e-5)


@pytest.mark.parametrize(
    ("v", "texts"),
    [
        (Variant(7, 3, shared="n"), {"n"}),
        (Variant(7, 3, band=3, shared="bands"), {"p_o"}),
        (Variant(7, 3, panel=48, shared="panels"), {"k_o"}),
        (Variant(7, 3, shared="blocks"), {"k_o"}),
        (Variant(7, 2, band=3, panel=48, shared="blocks"), {"k_i_o", "q_o_1"}),  # the rest shares a loop of its own
        (Variant(7, 4, shared="lines"), {"p_in", "p_in_1"}),
        (Variant(7, 4, blocks_first=False, shared="lines"), {"p"}),
        (Variant(7, 4, shared="rows"), {"q_o", "q_o_1"}),
    ],
)
def test_threads_share_the_loop_of_a_variant_in_all_its_copies(v: Variant, texts: set[str]) -> None:
    f = lower(CONV)
    shared = [s for s in schedule_of(f, v, Target.x86("avx512"), 2, False) if isinstance(s, Parallel)]
    assert {s.loop for s in shared} == texts | {"copy_n"}
    assert name_in_program(Shape.of(f), v) in texts


def test_the_busiest_thread_counts() -> None:
    f, machine = lower(Convolution(1, (7, 7), 64, 320, (3, 3), padding=((1, 1), (1, 1)))), Machine.example()
    one, two = Ranking(f, machine), Ranking(f, machine, threads=2)
    whole = one.computing_ns(Variant(7, 4))
    assert two.computing_ns(Variant(7, 4, shared="lines")) == pytest.approx(whole * 4 / 7)
    assert two.computing_ns(Variant(7, 4, shared="blocks")) == pytest.approx(whole * 3 / 5)
    assert two.computing_ns(Variant(7, 2, shared="blocks")) == pytest.approx(one.computing_ns(Variant(7, 2)) / 2)
    assert two.choices[0].variant.shared in ("blocks", "panels")
    # 3 blocks of 6 vectors, and 2 vectors, which threads share by their own rows
    assert two._share(Variant(7, 6, shared="blocks"), True, True) == 2 / 3
    assert two._share(Variant(7, 6, shared="blocks"), False, True) == 4 / 7


def test_all_variants_of_a_layer_apply() -> None:
    f = lower(Convolution(1, (56, 56), 64, 64, (3, 3), padding=((1, 1), (1, 1))))
    every = list(candidates(f, AVX512))
    shape = Shape.of(f)
    assert (shape.bands, shape.rows, shape.columns) == ("p", "q", "k")
    for v in random.Random(0).sample(every, 5):
        schedule_of(f, v, Target.x86("avx512"), 1, False)


def test_there_are_hundreds_to_thousands_of_variants_of_every_layer() -> None:
    for layer in RESNET50:
        every = list(candidates(lower(layer.convolution(1)), AVX512))
        assert len(every) == len(set(every))
        assert 200 < len(every) < 5000, layer


SEVEN = Convolution(1, (7, 7), 32, 64, (3, 3), padding=((1, 1), (1, 1)), epilogue=Epilogue(bias=True))
VALID = Convolution(1, (9, 9), 32, 64, (3, 3))


@pytest.mark.parametrize(
    "c", [SEVEN, replace(SEVEN, image=(14, 14), stride=(2, 2)), VALID], ids=["7x7", "14x14/2", "9x9"]
)
def test_tiles_that_span_rows_of_an_image_give_the_same_bits(c: Convolution) -> None:
    x, w, b = data(c)
    f, target = lower(c), Target.host()
    params = {"w": w.reshape(weight_shape(c)), "bias": b}

    def run(v: Variant) -> Any:
        kernel = Kernel(finished(f, schedule_of(f, v, target, 1, False)), target, params)
        return kernel.run((x,), None, (1, *c.out, c.filters))

    within = run(Variant(7, 1))
    for height in (14, 9, 5):  # whole rows of the image, one and some points of the next, less than a row
        np.testing.assert_array_equal(run(Variant(height, 1, spans=True)), within)


def test_a_spanning_program_is_the_definition_interpreted() -> None:
    c = Convolution(1, (4, 3), 2, 3, (3, 2), (1, 1), ((1, 1), (1, 0)), epilogue=Epilogue(bias=True))
    x, w, b = data(c)
    given = {"x": x.reshape(1, 4, 6), "w": w.reshape(weight_shape(c)), "bias": b}
    f = lower(c)
    found = interpret(apply(f, steps(f, Variant(4, 1, spans=True), Registers(16, 4))), {}, {}, given)
    np.testing.assert_allclose(found.buffers["y"], reference(c, x, w, b), atol=1e-5)


def test_spanning_tiles_are_chosen_where_a_row_of_an_image_does_not_fill_tiles() -> None:
    narrow = Ranking(lower(Convolution(1, (5, 5), 64, 64, (3, 3))), Machine.example())
    assert narrow.choices[0].variant.spans  # all 9 points of the result are one tile
    # where a filter leaves the image, a tenth of the terms are not added up by tiles of one row
    seven = Ranking(lower(SEVEN), Machine.example())
    assert not seven.choices[0].variant.spans
    assert seven.computing_ns(Variant(7, 3)) < 0.95 * seven.computing_ns(Variant(7, 3, spans=True))


@pytest.mark.parametrize(("height", "vectors"), [(14, 2), (9, 3), (12, 2)])
def test_spanning_tiles_do_no_arithmetic_on_addresses_in_their_sums(height: int, vectors: int) -> None:
    text = code(lower(VALID), Variant(height, vectors, spans=True), Target.x86("avx512"))
    assert not spills(text)
    kernel = max(kernels(text), key=lambda k: k.multiply_adds)
    assert kernel.multiply_adds >= height * vectors
    others = [i for i in kernel.instructions if not i.startswith("v")]
    assert len(others) <= 5, others  # a step of the weights, one of all rows, the end of the loop


@pytest.mark.parametrize(
    ("registers", "wanted"), [(AVX512, {(14, 2), (9, 3), (6, 4)}), (AVX2, {(6, 2), (4, 3)})], ids=["avx512", "avx2"]
)
def test_register_tiles(registers: Registers, wanted: set[tuple[int, int]]) -> None:
    found = set(register_tiles(1008, 1024, registers))
    assert wanted <= found
    assert all(rows * vectors + vectors + 1 <= registers.count for rows, vectors in found)
    assert register_tiles(1, registers.lanes, registers) == [(1, 1)]


def code(f: Func, v: Variant, target: Target) -> str:
    return assembly(module_text(finished(f, schedule_of(f, v, target, 1, False)), target), target)


@pytest.mark.parametrize(
    ("level", "height", "vectors"),
    [("avx512", 14, 2), ("avx512", 9, 3), ("avx512", 6, 4), ("avx512", 1, 8), ("avx2", 6, 2), ("avx2", 4, 3)],
)
def test_tiles_do_not_spill(level: Any, height: int, vectors: int) -> None:
    target = Target.x86(level)
    conv = Convolution(1, (36, 36), 32, 192, (3, 3), padding=((1, 1), (1, 1)), epilogue=Epilogue(True, True, "relu"))
    for f in (lower(conv), lower_product(Product(36 if height > 1 else 1, 192, 64))):
        text = code(f, Variant(height, vectors), target)
        found = kernels(text)
        assert any(k.multiply_adds >= height * vectors for k in found)
        assert not spills(text)


@pytest.mark.parametrize("cpu", CPUS["aarch64-linux-gnu"])
@pytest.mark.parametrize(("height", "vectors"), [(13, 2), (8, 3), (6, 4), (28, 1)])
def test_neon_tiles_multiply_by_element_and_do_not_spill(cpu: str, height: int, vectors: int) -> None:
    target = Target.named("aarch64-linux-gnu", cpu)
    conv = Convolution(1, (28, 28), 32, 192, (3, 3), padding=((1, 1), (1, 1)), epilogue=Epilogue(True, True, "relu"))
    for f in (lower(conv), lower_product(Product(196, 192, 64))):
        rows = Shape.of(f).extents[Shape.of(f).rows]
        fits = register_tiles(rows, 192, Registers(target.registers, target.lanes, target.broadcasts))
        assert (height, vectors) in fits
        text = code(f, Variant(height, vectors), target)
        assert not spills(text)
        kernel = max(kernels(text), key=lambda k: k.multiply_adds)
        sums = [i for i in kernel.instructions if i.startswith("fmla")]
        assert len(sums) >= height * vectors
        by_element = [i for i in sums if re.search(r"v\d+\.4s, v\d+\.4s, v\d+\.s\[\d\]", i)]
        assert len(by_element) >= 0.75 * len(sums)
