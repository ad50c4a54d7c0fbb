"""`out=` that shares memory with what is read: the result is the one that an array of its own gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.errors import StructureError

SIZE = 64


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


Case = Callable[[int], tuple[Callable[..., Any], tuple[int, ...]]]
PRIMITIVES: dict[str, Case] = {
    "matmul": lambda threads: (cortex.matmul(numbers(SIZE, SIZE), threads=threads), (SIZE, SIZE)),
    "with bias": lambda threads: (cortex.matmul(numbers(SIZE, SIZE), bias=numbers(SIZE), threads=threads), (7, SIZE)),
    "matrices": lambda threads: (cortex.matmul(numbers(3, 16, 16), threads=threads), (3, 5, 16)),
    "conv2d": lambda threads: (cortex.conv2d(numbers(8, 8, 3, 3), padding=1, threads=threads), (2, 8, 9, 9)),
    "conv2d NHWC": lambda threads: (
        cortex.conv2d(numbers(8, 8, 3, 3), padding=1, layout="NHWC", threads=threads),
        (2, 9, 9, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_out_is_the_input(name: str, threads: int) -> None:
    primitive, shape = PRIMITIVES[name](threads)
    x = numbers(*shape)
    want = primitive(x.copy())
    given = x.copy()
    assert primitive(given, out=given) is given
    np.testing.assert_array_equal(given, want)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_out_overlaps_the_input(name: str) -> None:
    primitive, shape = PRIMITIVES[name](1)
    x = numbers(*shape)
    want = primitive(x)
    for apart in (1, 16, SIZE, x.size // 2, x.size - 1):
        memory = np.zeros(x.size + apart, np.float32)
        low, high = memory[: x.size].reshape(shape), memory[apart:].reshape(shape)
        for given, out in ((low, high), (high, low)):
            given[...] = x
            primitive(given, out=out)
            np.testing.assert_array_equal(out, want)


def test_out_is_the_weight() -> None:
    """A primitive has its own copy of the weight."""
    weight = numbers(SIZE, SIZE)
    multiply, x = cortex.matmul(weight), numbers(5, SIZE)
    want = multiply(x)
    multiply(weight.copy(), out=weight)
    np.testing.assert_array_equal(multiply(x), want)


def test_out_is_the_residual() -> None:
    conv, x, residual = cortex.conv2d(numbers(8, 8, 3, 3), padding=1), numbers(1, 8, 6, 6), numbers(1, 8, 6, 6)
    want, same = conv(x, residual=residual), conv(x, residual=x)
    out = residual.copy()
    np.testing.assert_array_equal(conv(x, residual=out, out=out), want)
    out = x.copy()
    np.testing.assert_array_equal(conv(out, residual=out, out=out), same)


def test_out_is_a_tensor_that_shares_memory() -> None:
    torch = pytest.importorskip("torch")
    multiply, x = cortex.matmul(numbers(SIZE, SIZE)), numbers(SIZE, SIZE)
    want = multiply(x.copy())
    given = torch.from_numpy(x)
    assert multiply(given, out=given) is given
    np.testing.assert_array_equal(x, want)
    given = torch.from_numpy(numbers(SIZE, SIZE)).t()  # not contiguous: the input is copied, the result is not written
    with pytest.raises(StructureError, match="out cannot be written to as it is"):
        multiply(given, out=given)


def test_other_arrays_for_the_result() -> None:
    multiply, x = cortex.matmul(numbers(SIZE, SIZE)), numbers(5, SIZE)
    fixed = x.copy()
    fixed.flags.writeable = False
    for wrong in (fixed, np.zeros((SIZE, 5), np.float32).T, np.zeros((5, 2 * SIZE), np.float32)[:, ::2]):
        with pytest.raises(
            StructureError, match="out cannot be written to as it is; give a writable array, contiguous"
        ):
            multiply(x, out=wrong)
    with pytest.raises(StructureError, match="out has elements of type float64"):
        multiply(x, out=np.zeros((5, SIZE)))
    nothing = np.zeros((0, SIZE), np.float32)
    assert multiply(nothing, out=nothing) is nothing
