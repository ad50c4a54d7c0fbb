"""Arrays as compiled code expects them: rows padded, aligned to a cache line, with room to read past the end."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

ALIGNMENT = 64
LARGE_PAGE = 2 << 20
F32 = np.dtype(np.float32)
NARROW = frozenset(map(np.dtype, (np.uint16, np.float16, np.int8, np.int16)))

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def padded(value: Array, align: int) -> Array:
    """A copy of `value` whose last dimension is padded with zeros to a multiple of `align`.

    In f32, but for 16-bit floats and integers, which are packed weights and stay as they are.
    """
    array = padded_zeros(value.shape, align, value.dtype if value.dtype in NARROW else F32)
    array[tuple(slice(n) for n in value.shape)] = value
    return array


def without_padding(array: Array, shape: tuple[int, ...]) -> Array:
    """What `padded` made `array` of, which had this shape: a view that cannot be written."""
    view: Array = array[tuple(map(slice, shape))] if shape else array.view()
    view.flags.writeable = False
    return view


def padded_shape(shape: tuple[int, ...], align: int) -> tuple[int, ...]:
    """The shape of what `padded` makes of an array."""
    return (*shape[:-1], -(-shape[-1] // align) * align) if shape else shape


def padded_zeros(shape: tuple[int, ...], align: int, dtype: np.dtype[Any] = F32) -> Array:
    """Zeros, as `padded` makes them of an array of this shape."""
    shape = padded_shape(shape, align)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return _zeros(size).view(dtype).reshape(shape)


def _zeros(size: int) -> npt.NDArray[np.uint8]:
    """So many zero bytes, with a cache line of room behind them; in large pages where that is at least one of them."""
    if size >= LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        return _zeros_in_large_pages(size)
    raw = np.zeros(size + 2 * ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def _zeros_in_large_pages(size: int) -> npt.NDArray[np.uint8]:
    """The same at a multiple of the size of a large page, which the system is asked to use; it may decline.

    The memory is private to the process, and given back with the last array that looks at it.
    """
    room = -(-(size + ALIGNMENT) // mmap.PAGESIZE) * mmap.PAGESIZE
    mapped = mmap.mmap(-1, room + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    raw = np.frombuffer(mapped, dtype=np.uint8)
    start = -raw.ctypes.data % LARGE_PAGE
    with suppress(OSError):  # a system without large pages
        mapped.madvise(mmap.MADV_HUGEPAGE, start, room)
    return raw[start : start + size]
