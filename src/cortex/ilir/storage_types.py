"""How narrow numbers are kept in memory: rounding weights to 16 or 8 bits, and the values they then stand for.

    bf16   the upper half of an f32: its range, 8 bits of precision
    f16    IEEE half precision: 11 bits of precision, up to 65504
    i8     an integer q of -127..127 that stands for q * scale; a scale for each column of a packed buffer

Everything is rounded to nearest, ties to even, from f32. Infinities and NaN keep their meaning in 16 bits; 8 bits have
none, and f16 has no number of 65520 or more: such weights are refused, as they would be silently wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.errors import ModelError
from cortex.ilir.ir import Storage

Array = npt.NDArray[Any]

LARGEST_I8 = 127
STEPS_AXIS = -3
"""Of a packed array: the axis of the reduction, along which the weights of a column have one scale."""


def as_stored(values: Array, dtype: Storage, whose: str) -> Array:
    """A packed array as it lies in memory: bf16 as uint16, f16 as float16, i8 as int8. `whose` is for messages."""
    match dtype:
        case "bf16":
            return _to_bf16(values)
        case "f16":
            return _to_f16(values, whose)
        case "i8":
            one = scales(values, whose)
            quotients = np.divide(_exact(values), one, out=np.zeros(values.shape), where=one > 0)
            rounded: Array = np.rint(quotients).clip(-LARGEST_I8, LARGEST_I8).astype(np.int8)
            return rounded
        case _:
            return values


def widened(stored: Array, dtype: Storage) -> Array:
    """What loads of a stored array give: for i8 the integers, which the program multiplies with their scales."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return stored.astype(np.float32) if dtype in ("f16", "i8") else stored


def scales(values: Array, whose: str) -> Array:
    """What an integer of 8 bits stands for, for each column of a packed array: the greatest weight is 127 of them."""
    if not np.isfinite(values).all():
        raise ModelError(
            f"weights_dtype='int8': the weight {whose} has elements that are not finite, for which 8 bits have no "
            "number. Use 'bf16' or 'fp16'."
        )
    greatest = np.abs(_exact(values)).max(axis=STEPS_AXIS, keepdims=True, initial=0.0)
    each: Array = (greatest / LARGEST_I8).astype(np.float32)
    return each


def _exact(values: Array) -> Array:
    """The f32 nearest to each value, in double precision: quotients of them are then rounded once."""
    return values.astype(np.float32).astype(np.float64)


def _to_bf16(values: Array) -> Array:
    bits = values.astype(np.float32).view(np.uint32)
    upper, lower = bits >> np.uint32(16), bits & np.uint32(0xFFFF)
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper & np.uint32(1) == 1))
    # A NaN whose payload is in the lower half alone would become an infinity; it is made quiet instead.
    rounded = np.where(np.isnan(values), upper | np.uint32(0x40), upper + up)
    return rounded.astype(np.uint16)


def _to_f16(values: Array, whose: str) -> Array:
    single = values.astype(np.float32)
    with np.errstate(over="ignore"):
        half = single.astype(np.float16)
    lost = np.isinf(half) & np.isfinite(single)
    if lost.any():
        largest = float(np.abs(single[lost]).max())
        raise ModelError(
            f"weights_dtype='fp16': the weight {whose} has an element of size {largest:g}, beyond 65504, the largest "
            "number of 16-bit floats. Use 'bf16', which has the range of fp32."
        )
    return half
