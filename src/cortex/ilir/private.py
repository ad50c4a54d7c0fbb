"""How the threads' copies of a private buffer lie in memory."""

from __future__ import annotations

from math import prod

from cortex.ilir.ir import Buffer
from cortex.ilir.to_python import extents
from cortex.ir.scalar import Int

_APART = 32  # elements: two cache lines, as the machine fetches neighbouring lines together


def private_stride(b: Buffer) -> int:
    """Elements from one thread's copy of a private buffer to the next; no two threads share a cache line."""
    elements = prod(e.value for e in extents(b) if isinstance(e, Int))
    return -(-elements // _APART) * _APART
