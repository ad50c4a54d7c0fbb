"""A compiled program on arrays of fixed shapes: weights in place, temporaries made when they are needed.

The arrays that change from call to call are the program's fields (inputs) and its state (the result), which are the
caller's own: nothing is copied. Calls from several threads at once have temporaries of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from cortex import _native
from cortex.codegen.llvm.build import build
from cortex.codegen.load import load
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.ir import Buffer, Func, Packing, Scope
from cortex.ilir.pack import pack
from cortex.ilir.private import private_stride
from cortex.ilir.to_python import extents
from cortex.ir.scalar import Int
from cortex.runtime.storage import Array, padded


class Kernel:
    """A program without sizes or index functions, with one state, compiled."""

    def __init__(self, f: Func, target: Target, params: Mapping[str, Array]) -> None:
        self.func, self.object_code = f, build(f, target)
        self.inputs = tuple(b.name for b in f.buffers if b.scope is Scope.FIELD)
        packings = {p.buffer: p for p in f.packings}
        code = load(self.object_code.code, self.object_code.entry)
        taken = [b for b in f.buffers if b.scope is not Scope.REGISTER]
        self._native = _native.Kernel(code.address, [_source(b, params, packings) for b in taken], code)

    def run(self, inputs: tuple[Array, ...], out: Array | None, shape: tuple[int, ...], threads: int = 1) -> Array:
        """The result for arrays of f32, one for each of `inputs`, contiguous and of as many elements: `out`, or new."""
        result: Array = self._native.run(inputs, out, shape, threads)
        return result


def _source(b: Buffer, params: Mapping[str, Array], packings: Mapping[str, Packing]) -> tuple[str, Any]:
    """Where the memory of a buffer comes from; see native/kernel.hpp."""
    elements = prod(e.value for e in extents(b) if isinstance(e, Int))
    match b.scope:
        case Scope.PARAM:
            return "weight", padded(params[b.name], b.align)
        case Scope.PACKED:
            return "weight", padded(pack(packings[b.name], params, b.dtype), b.align)
        case Scope.FIELD:
            return "input", elements
        case Scope.STATE:
            return "output", elements
        case Scope.SCRATCH:
            return "scratch", elements
        case Scope.PRIVATE:
            return "private", private_stride(b)
        case _:
            raise InternalError(f"the {b.scope} buffer {b.name!r} is no argument of a kernel")
