"""Narrow numbers: rounded to nearest even, exact when widened, and refused where they would be wrong."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from cortex.errors import InternalError, ModelError
from cortex.ilir.interp import run
from cortex.ilir.ir import Accumulate, Buffer, For, Func, PackedGate, Packing, Scope, Store
from cortex.ilir.pack import pack
from cortex.ilir.storage_types import LONGEST_INPUTS, as_stored, longest_rounded, scales, widened
from cortex.ilir.verify import verify
from cortex.ir.scalar import Binary, Int, Load, Var

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -1.5, 2.0**-14, 3e-40, -1e-45, 65504.0], np.float32)


def rows(values: np.ndarray) -> np.ndarray:
    """A packed array of one column for each value."""
    return values.reshape(1, 1, 1, -1)


def test_bf16_is_what_torch_rounds_to() -> None:
    torch = pytest.importorskip("torch")
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    values = np.concatenate([bits.view(np.float32), SPECIAL])
    values = values[~np.isnan(values)]
    got = widened(as_stored(values, "bf16", "W"), "bf16")
    np.testing.assert_array_equal(got.view(np.uint32), torch.from_numpy(values).bfloat16().float().numpy().view("u4"))


def test_ties_go_to_even() -> None:
    values = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8], np.float32)  # half-way between neighbours
    np.testing.assert_array_equal(widened(as_stored(values, "bf16", "W"), "bf16"), [1, 1 + 4 * 2.0**-8])
    values = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11], np.float32)
    np.testing.assert_array_equal(widened(as_stored(values, "f16", "W"), "f16"), [1, 1 + 4 * 2.0**-11])


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_infinities_and_nan_are_kept(dtype: str) -> None:
    nan = np.array([0x7F800001, 0xFFC00000], np.uint32).view(np.float32)
    assert np.isnan(widened(as_stored(nan, dtype, "W"), dtype)).all()  # type: ignore[arg-type]
    infinite = np.array([np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(widened(as_stored(infinite, dtype, "W"), dtype), infinite)  # type: ignore[arg-type]


def test_numbers_beyond_half_precision_are_refused() -> None:
    with pytest.raises(ModelError, match=r"weight 'U' has an element of size 65520, beyond 65504.*'bf16'"):
        as_stored(np.array([1.0, -65520.0], np.float32), "f16", "'U'")
    assert widened(as_stored(np.array([65519.0], np.float32), "f16", "U"), "f16") == 65504


def test_integers_have_a_scale_for_each_column() -> None:
    values = rows(np.array([3.0, 0.0, -1e-30], np.float32)).repeat(4, axis=-3)
    values[0, 1, 0, 0] = -1.0
    one = scales(values, "i8", "W")
    assert one.shape == (1, 1, 1, 3)
    stored = as_stored(values, "i8", "W")
    np.testing.assert_array_equal(stored[0, :, 0], [[127, 0, -127], [-42, 0, -127], [127, 0, -127], [127, 0, -127]])
    assert np.abs(stored * one.astype(np.float64) - values).max() <= one.max() / 2


@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_integers_have_no_infinities(dtype: Literal["i8", "i16"]) -> None:
    asked = dtype.replace("i", "int")
    with pytest.raises(ModelError, match=rf"weights_dtype='{asked}': the weight 'U' has elements that are not finite"):
        scales(rows(np.array([1.0, np.nan], np.float32)), dtype, "'U'")


@pytest.mark.parametrize("steps", [1, 2, 7, 512, 5000])
def test_sums_of_products_of_16_bits_fit_32(steps: int) -> None:
    """The worst inputs for a column of weights are those in its direction."""
    rng = np.random.default_rng(steps)
    for values in (rng.normal(size=steps), np.ones(steps), rng.uniform(-1, 1, steps) ** 9, np.eye(1, steps)[0]):
        column = values.astype(np.float32).reshape(1, steps, 1, 1)
        weights = as_stored(column, "i16", "W").astype(np.int64)
        length = longest_rounded(LONGEST_INPUTS, steps)
        inputs = np.rint(values / np.sqrt((values**2).sum()) * length).astype(np.int64)
        assert np.abs(inputs).max() <= 32767
        assert np.abs(weights).max() <= 32767
        assert np.abs(weights.ravel() * inputs).sum() < 2**31
        assert np.abs(as_stored(column, "i8", "W").astype(np.int64).ravel() * inputs).sum() < 2**31
        one = scales(column, "i16", "W").astype(np.float64)
        assert np.abs(weights * one - column).max() <= 0.51 * one.max()


def test_steps_lie_side_by_side() -> None:
    w = np.arange(10, dtype=np.float32).reshape(2, 5)
    p = Packing("p", (), 2, 5, 2, (PackedGate("W", (Var("j"), Var("k"))),), steps=2)
    got = widened(pack(p, {"W": w}, "bf16"), "bf16")
    assert got.shape == p.shape == (1, 3, 1, 2, 2)
    np.testing.assert_array_equal(got[0, :, 0], [[[0, 1], [5, 6]], [[2, 3], [7, 8]], [[4, 0], [9, 0]]])


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (Buffer("s", "f16", (Int(4),), Scope.SCRATCH), "is of type f16, which is for packed ones"),
        (Buffer("s", "bf16", (Int(4),), Scope.PACKED), "has not the two elements of a word"),
        (Buffer("s", "i8", (Int(4),), Scope.SCRATCH), "is of type i8, which is for packed ones"),
        (Buffer("s", "i16", (Int(4),), Scope.STATE), "is of type i16, which is for packed ones"),
        (Buffer("s", "i32", (Int(4),), Scope.SCRATCH), "is of type i32, which is for registers"),
    ],
)
def test_where_narrow_buffers_may_be(buffer: Buffer, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verify(Func("f", (), (), (buffer,), ()))


def test_only_integers_are_summed_in_integers() -> None:
    acc = Buffer("acc", "i32", (Int(1),), Scope.REGISTER)
    x = Buffer("x", "f32", (Int(1),), Scope.PARAM)
    first = (Int(0),)
    body = (Accumulate("acc", first, "add", Binary("mul", Load("x", first), Load("x", first))),)
    with pytest.raises(InternalError, match="sums what is no product of integers"):
        verify(Func("f", (), (), (acc, x), body))


@pytest.mark.parametrize("dtype", ["bf16", "i16"])
def test_what_a_program_stores_is_rounded(dtype: Literal["bf16", "i16"]) -> None:
    values = np.array([1 + 2.0**-8, 2.5, -3.5, 1e9, -1e9, np.nan, 0.3], np.float32)
    rounded = Buffer("r", dtype, (Int(7),), Scope.SCRATCH)
    buffers = (Buffer("x", "f32", (Int(7),), Scope.PARAM), rounded, Buffer("y", "f32", (Int(7),), Scope.SCRATCH))
    i = Var("i")
    copy = For("i", Int(0), Int(7), (Store("r", (i,), Load("x", (i,))), Store("y", (i,), Load("r", (i,)))))
    f = Func("f", (), (), buffers, (copy,))
    verify(f)
    want = widened(as_stored(values, "bf16", ""), "bf16") if dtype == "bf16" else [1, 2, -4, 32767, -32768, 0, 0]
    np.testing.assert_array_equal(run(f, {}, {}, {"x": values}).buffers["y"], want)
