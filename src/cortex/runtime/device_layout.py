"""Where the arrays of a request lie in the memory of a device: few pieces of memory, each with several arrays.

request   all index functions and fields, in the order of the program: filled by the host and copied at once
work      states and scratch
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from cortex.codegen.gpu.program import GpuProgram
from cortex.codegen.gpu.walk_host import value_of
from cortex.errors import StructureError
from cortex.ilir.ir import Buffer, Scope
from cortex.runtime.storage import Array

WORD = 4
MOST_ELEMENTS = 2**31 - 1
"""Of one buffer: kernels count elements with 32 bits."""


@dataclass(frozen=True)
class Span:
    """A piece of memory: so many bytes from an offset on."""

    offset: int
    size: int


@dataclass(frozen=True)
class Layout:
    """Arrays side by side, by name, and how many bytes they take together."""

    spans: Mapping[str, Span]
    size: int

    @staticmethod
    def of(sizes: Iterable[tuple[str, int]], alignment: int) -> Layout:
        """Arrays of so many bytes, each at a multiple of `alignment`. Empty ones take a word, as memory has no less."""
        spans: dict[str, Span] = {}
        end = 0
        for name, size in sizes:
            spans[name] = Span(end, max(size, WORD))
            end += -(-max(size, WORD) // alignment) * alignment
        return Layout(spans, max(end, WORD))


def request_layout(program: GpuProgram, sizes: Mapping[str, int], alignment: int) -> Layout:
    """Index functions and fields that some kernel takes."""
    taken = arguments_of(program)
    index = [(i.name, WORD * value_of(i.extent, sizes)) for i in program.index_functions if i.name in taken]
    fields = [(b.name, buffer_bytes(b, sizes)) for b in program.buffers if b.scope is Scope.FIELD and b.name in taken]
    return Layout.of([*index, *fields], alignment)


def work_layout(program: GpuProgram, sizes: Mapping[str, int], alignment: int) -> Layout:
    """States, and the scratch that some kernel takes."""
    taken = arguments_of(program)
    wanted = (b for b in program.buffers if b.scope is Scope.STATE or (b.scope is Scope.SCRATCH and b.name in taken))
    return Layout.of([(b.name, buffer_bytes(b, sizes)) for b in wanted], alignment)


def arguments_of(program: GpuProgram) -> frozenset[str]:
    """The arrays that kernels take."""
    return frozenset(a.name for k in program.kernels for a in k.arguments if a.kind in ("buffer", "index"))


def padded_shape(b: Buffer, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of a buffer as it lies in memory."""
    shape = [value_of(e, sizes) for e in b.shape]
    if shape:
        shape[-1] = -(-shape[-1] // b.align) * b.align
    return tuple(shape)


def buffer_bytes(b: Buffer, sizes: Mapping[str, int]) -> int:
    """The memory that a buffer of 32-bit elements takes."""
    elements = prod(padded_shape(b, sizes))
    if elements > MOST_ELEMENTS:
        raise StructureError(
            f"a request of {sizes['num_nodes']} nodes needs {elements} elements of {b.name}, and kernels count to "
            f"{MOST_ELEMENTS}; split it into smaller batches"
        )
    return WORD * elements


def fill(
    layout: Layout,
    arrays: Mapping[str, Array],
    fields: Iterable[tuple[Buffer, Array]],
    sizes: Mapping[str, int],
    into: Array,
) -> None:
    """Write a request into the bytes that are copied to the device. Of rows, the padding is left as it is."""
    for name, span in layout.spans.items():
        if name in arrays:
            values = arrays[name]
            into[span.offset : span.offset + values.nbytes].view(np.int32)[:] = values
    for b, values in fields:
        if b.name in layout.spans and values.size:
            shape = padded_shape(b, sizes)
            start = layout.spans[b.name].offset
            whole = into[start : start + WORD * prod(shape)].view(np.float32).reshape(shape)
            whole[tuple(map(slice, values.shape))] = values
