"""Arrays as compiled code expects them: f32, rows padded, aligned to a cache line, with room to read past the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64

Array = npt.NDArray[Any]


def padded(value: Array, align: int) -> Array:
    """A copy of `value` in f32 whose last dimension is padded with zeros to a multiple of `align`."""
    shape = value.shape
    if shape:
        shape = (*shape[:-1], -(-shape[-1] // align) * align)
    size = int(np.prod(shape, dtype=np.int64)) * 4
    raw = np.zeros(size + 2 * ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    array: Array = raw[start : start + size].view(np.float32).reshape(shape)
    array[tuple(slice(n) for n in value.shape)] = value
    return array
