"""How narrow numbers are kept in memory: rounding weights to 16 or 8 bits, and the values they then stand for.

    bf16   the upper half of an f32: its range, 8 bits of precision
    f16    IEEE half precision: 11 bits of precision, up to 65504
    i8     an integer q of -127..127 that stands for q * scale; a scale for each column of a packed buffer
    i16    an integer q that stands for q * scale; a column of weights is a vector of them no longer than
           LONGEST_WEIGHTS, a row of inputs one no longer than LONGEST_INPUTS: sums of their products fit 32 bits

Everything is rounded to nearest, ties to even, from f32. Infinities and NaN keep their meaning in 16 bits; 8 bits have
none, and f16 has no number of 65520 or more: such weights are refused, as they would be silently wrong.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cortex.errors import ModelError
from cortex.ilir.ir import Storage

Array = npt.NDArray[Any]

LARGEST_I8 = 127
LARGEST_I16 = 32767
LONGEST_WEIGHTS, LONGEST_INPUTS = 65534.0, 32767.0
"""By the inequality of Cauchy and Schwarz no partial sum of products is larger than the product of these, which is less
than 2**31. A column of up to 266 000 integers of 8 bits is not longer than LONGEST_WEIGHTS either."""
STEPS_AXIS = -3
"""Of a packed array: the axis of the reduction, along which the weights of a column have one scale."""


def as_stored(values: Array, dtype: Storage, whose: str) -> Array:
    """A packed array as it lies in memory: bf16 as uint16, f16 as float16, i8 as int8. `whose` is for messages."""
    match dtype:
        case "bf16":
            return _to_bf16(values)
        case "f16":
            return _to_f16(values, whose)
        case "i8" | "i16":
            one = scales(values, dtype, whose)
            quotients = np.divide(_exact(values), one, out=np.zeros(values.shape), where=one > 0)
            largest, kind = (LARGEST_I8, np.int8) if dtype == "i8" else (LARGEST_I16, np.int16)
            rounded: Array = np.rint(quotients).clip(-largest, largest).astype(kind)
            return rounded
        case _:
            return values


def widened(stored: Array, dtype: Storage) -> Array:
    """What loads of a stored array give: for i8 and i16 integers, which the program multiplies with their scales."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return stored.astype(np.float32) if dtype in ("f16", "i8", "i16") else stored


def scales(values: Array, dtype: Literal["i8", "i16"], whose: str) -> Array:
    """What an integer stands for, for each column of a packed array.

    i8: the greatest weight is 127 of them. i16: it is 32767 of them, or fewer if the column were longer than allowed.
    """
    if not np.isfinite(values).all():
        raise ModelError(
            f"weights_dtype='{dtype.replace('i', 'int')}': the weight {whose} has elements that are not finite, for "
            "which integers have no number. Use 'bf16' or 'fp16'."
        )
    exact = _exact(values)
    greatest = np.abs(exact).max(axis=STEPS_AXIS, keepdims=True, initial=0.0)
    if dtype == "i8":
        each: Array = (greatest / LARGEST_I8).astype(np.float32)
        return each
    length = np.sqrt((exact**2).sum(axis=STEPS_AXIS, keepdims=True))
    longest = longest_rounded(LONGEST_WEIGHTS, values.shape[STEPS_AXIS])
    shortest: Array = np.maximum(greatest / LARGEST_I16, length / longest).astype(np.float32)
    return shortest


def longest_rounded(length: float, steps: int) -> float:
    """How long a vector of so many numbers may be before it is rounded to integers, to be no longer than `length` then.

    Rounding moves every number by half at most; a little room is left for the rounding of what the length is made of.
    """
    return (length - math.sqrt(steps) / 2) * (1 - 2.0**-12)


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
