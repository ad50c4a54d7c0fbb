"""Arrays as compiled code expects them: rows padded, aligned to a cache line, with room to read past the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64
NARROW = frozenset(map(np.dtype, (np.uint16, np.float16, np.int8)))

Array = npt.NDArray[Any]


def padded(value: Array, align: int) -> Array:
    """A copy of `value` whose last dimension is padded with zeros to a multiple of `align`.

    In f32, but for 16-bit floats and integers, which are packed weights and stay as they are.
    """
    dtype = value.dtype if value.dtype in NARROW else np.dtype(np.float32)
    shape = value.shape
    if shape:
        shape = (*shape[:-1], -(-shape[-1] // align) * align)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.zeros(size + 2 * ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    array: Array = raw[start : start + size].view(dtype).reshape(shape)
    array[tuple(slice(n) for n in value.shape)] = value
    return array
