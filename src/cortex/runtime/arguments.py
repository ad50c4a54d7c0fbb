"""The arrays that object code takes, each as a tuple that says where its memory comes from.

    ("index", NAME)                          an array of the linear form
    ("weight", ARRAY)                        a parameter, padded or packed
    ("field", NAME)                          a float field of all nodes
    ("state", NAME, SHAPE, ELEMENTS)         a state of all nodes; a node has so many elements, padding included
    ("scratch", SIZE or None, WORDS)         so many words of 32 bits for each of a size of the linear form, or once
    ("scratch", SIZE, WORDS, COPIES)         the same as many times as another size says
    ("private", ELEMENTS)                    one for each thread
    ("private", ELEMENTS, SIZE)              so many for each of a size of the linear form, for each thread

This is what the native call and exported packages are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from cortex.ilir.ir import ROUNDING, Buffer, Scope
from cortex.ilir.pack import pack
from cortex.ilir.private import copied_rows, private_stride
from cortex.ir.scalar import Int, Var
from cortex.lower.linear_form import NUM_PARTS
from cortex.ra import ir as ra
from cortex.runtime.signature import Signature
from cortex.runtime.storage import Array, padded


def arguments(
    m: ra.Model,
    f: Signature,
    make_params: Callable[[], Mapping[str, Array]],
    padded_already: Mapping[str, Array] = MappingProxyType({}),
) -> list[tuple[Any, ...]]:
    """The arrays of the function `f` that `m` was compiled to, in order.

    The parameters are asked for only where some array is not `padded_already`.
    """
    dtypes = {b.name: b.dtype for b in f.buffers}
    lacks = any(b.scope in (Scope.PARAM, Scope.PACKED) and b.name not in padded_already for b in f.buffers)
    params = make_params() if lacks else {}
    packed = {p.buffer: pack(p, params, dtypes[p.buffer]) for p in f.packings if p.buffer not in padded_already}
    arrays: list[tuple[Any, ...]] = [("index", name) for name in f.index_functions]
    return arrays + [
        ("weight", padded_already[b.name]) if b.name in padded_already else _argument(m, b, params, packed, f.read)
        for b in f.buffers
    ]


def field_align(f: Signature) -> int:
    """To a multiple of how many elements rows of float fields are padded."""
    return max((b.align for b in f.buffers if b.scope is Scope.FIELD), default=1)


def _argument(
    m: ra.Model, b: Buffer, params: Mapping[str, Array], packed: Mapping[str, Array], read: tuple[str, ...]
) -> tuple[Any, ...]:
    """Where the memory of a buffer comes from."""
    match b.scope:
        case Scope.PARAM:
            return "weight", padded(params[b.name] if b.name in read else np.zeros(1), b.align)
        case Scope.PACKED:
            return "weight", padded(packed[b.name], 1)
        case Scope.FIELD:
            return "field", b.name.removeprefix("field_")
        case Scope.STATE:
            state = next(s for s in m.outputs if f"state_{s.name}" == b.name)
            return "state", state.name, state.type.shape, _row(b)
        case Scope.PRIVATE:
            return "private", private_stride(b)
        case Scope.COPIED:
            size, elements = copied_rows(b)
            return ("private", elements) if size is None else ("private", elements, size)
        case _:
            match b.shape:
                case (copies, Var(rows), *_) if copies == NUM_PARTS:
                    return "scratch", rows, _words(b), NUM_PARTS.name
                case (Var(rows), *_):
                    return "scratch", rows, _words(b)
                case _:
                    return "scratch", None, _words(b)


def _row(b: Buffer) -> int:
    """Elements of one row of a buffer, padding included."""
    return _elements(Buffer(b.name, b.dtype, b.shape[1:], b.scope, b.align))


def _words(b: Buffer) -> int:
    """The memory of one row of a scratch buffer, or of all of it where it has none, in words of 32 bits."""
    return -(-_elements(b) // 2) if b.dtype in ROUNDING else _elements(b)


def _elements(b: Buffer) -> int:
    extents = [e.value for e in b.shape if isinstance(e, Int)]
    if extents:
        extents[-1] = -(-extents[-1] // b.align) * b.align
    return int(np.prod(extents, dtype=np.int64))
