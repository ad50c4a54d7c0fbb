"""How the threads' copies of a private or a copied buffer lie in memory."""

from __future__ import annotations

from math import prod

from cortex.ilir.ir import Buffer
from cortex.ilir.to_python import extents
from cortex.ir.scalar import Int, Var

_APART = 32  # elements: two cache lines, as the machine fetches neighbouring lines together


def private_stride(b: Buffer) -> int:
    """Elements from one thread's copy of a private buffer to the next; no two threads share a cache line."""
    elements = prod(e.value for e in extents(b) if isinstance(e, Int))
    return -(-elements // _APART) * _APART


def copied_rows(b: Buffer) -> tuple[str | None, int]:
    """Of one thread's copy of a copied buffer: the size that says how many rows it has, if any, and elements of a row.

    The next copy follows at once.
    """
    sizes = [e.name for e in b.shape if isinstance(e, Var)]
    return (sizes[0] if sizes else None), prod(e.value for e in extents(b) if isinstance(e, Int))
