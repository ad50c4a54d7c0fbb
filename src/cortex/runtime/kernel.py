"""A compiled program on arrays of fixed shapes: weights in place, memory for temporaries at hand.

The arrays that change from call to call are the program's fields (inputs) and states (results), which are the
caller's own: nothing is copied. Calls from several threads at once have temporaries of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from cortex import _native
from cortex.codegen.llvm.build import build
from cortex.codegen.llvm.load import load
from cortex.codegen.target import Target
from cortex.ilir.ir import Buffer, Func, Scope
from cortex.ilir.pack import pack
from cortex.ilir.private import private_stride
from cortex.ilir.to_python import extents
from cortex.ir.scalar import Int
from cortex.runtime.storage import Array, padded

_GIVEN = (Scope.FIELD, Scope.STATE)


class Kernel:
    """A program without sizes or index functions, compiled; call it with the arrays of its fields and states."""

    def __init__(self, f: Func, target: Target, params: Mapping[str, Array]) -> None:
        self.func = f
        self.object_code = build(f, target)
        self._code = load(self.object_code)
        packed = {p.buffer: p for p in f.packings}
        self._buffers = [b for b in f.buffers if b.scope is not Scope.REGISTER]
        self._weights = {
            b.name: padded(pack(packed[b.name], params, b.dtype) if b.name in packed else params[b.name], b.align)
            for b in self._buffers
            if b.scope is Scope.PACKED or (b.scope is Scope.PARAM and _is_read(f, b))
        }
        self._given = [b.name for b in self._buffers if b.scope in _GIVEN]
        self._free: list[_Workspace] = []

    def __call__(self, given: Mapping[str, Array], threads: int = 1) -> None:
        """Run it on aligned arrays of f32, contiguous, with as many elements as the program's buffers have."""
        workspace = self._free.pop() if self._free else _Workspace(self._buffers, self._weights)
        table = workspace.table(threads)
        for name in self._given:
            table[workspace.place[name]] = given[name].ctypes.data
        address = table.ctypes.data
        _native.run_entry(self._code.address, [address] * threads, 0)
        self._free.append(workspace)


class _Workspace:
    """The addresses that a program takes, and the temporaries among them."""

    def __init__(self, buffers: list[Buffer], weights: Mapping[str, Array]) -> None:
        self.buffers, self.threads = buffers, 0
        self.place = {b.name: i for i, b in enumerate(buffers)}
        self.kept: dict[str, Array] = dict(weights)
        self.addresses = np.zeros(len(buffers), np.uint64)

    def table(self, threads: int) -> Array:
        """The addresses, for a call on so many threads."""
        if threads > self.threads:
            self.threads = threads
            for b in self.buffers:
                elements = prod(e.value for e in extents(b) if isinstance(e, Int))
                if b.scope is Scope.PRIVATE:
                    self.kept[b.name] = padded(np.zeros(private_stride(b) * threads, np.float32), 1)
                elif b.scope is Scope.SCRATCH and b.name not in self.kept:
                    self.kept[b.name] = padded(np.zeros(elements, np.float32), 1)
                if b.name in self.kept:
                    self.addresses[self.place[b.name]] = self.kept[b.name].ctypes.data
        return self.addresses


def _is_read(f: Func, b: Buffer) -> bool:
    """Does the program itself read a param, or only what is packed from it?"""
    from cortex.ir.node import walk
    from cortex.ir.scalar import Load

    return any(isinstance(n, Load) and n.buffer == b.name for s in f.body for n in walk(s))
