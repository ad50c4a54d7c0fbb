"""Narrow numbers: rounded to nearest even, exact when widened, and refused where they would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from cortex.errors import InternalError, ModelError
from cortex.ilir.ir import Buffer, Func, PackedGate, Packing, Scope
from cortex.ilir.pack import pack
from cortex.ilir.storage_types import as_stored, scales, widened
from cortex.ilir.verify import verify
from cortex.ir.scalar import Int, Var

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
    one = scales(values, "W")
    assert one.shape == (1, 1, 1, 3)
    stored = as_stored(values, "i8", "W")
    np.testing.assert_array_equal(stored[0, :, 0], [[127, 0, -127], [-42, 0, -127], [127, 0, -127], [127, 0, -127]])
    assert np.abs(stored * one.astype(np.float64) - values).max() <= one.max() / 2


def test_integers_have_no_infinities() -> None:
    with pytest.raises(ModelError, match=r"weight 'U' has elements that are not finite"):
        scales(rows(np.array([1.0, np.nan], np.float32)), "'U'")


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
    ],
)
def test_where_narrow_buffers_may_be(buffer: Buffer, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verify(Func("f", (), (), (buffer,), ()))
