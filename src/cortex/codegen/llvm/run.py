"""Run a function of ILIR once as machine code: the compiled counterpart of `cortex.ilir.interp.run`.

For tests, reports and benchmarks of single kernels. Executables call the same code through the native extension.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.codegen.llvm.build import build
from cortex.codegen.load import LoadedCode, load
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.ir import Buffer, Func, Scope, Storage
from cortex.ilir.pack import pack
from cortex.ilir.private import private_stride
from cortex.ilir.to_python import extents
from cortex.ir.scalar import Expr, Int
from cortex.ir.simplify import simplify, substitute

Array = npt.NDArray[Any]

_DTYPES: dict[Storage, npt.DTypeLike] = {
    "f32": np.float32, "i64": np.int64, "bool": np.bool_, "bf16": np.uint16, "f16": np.float16, "i8": np.int8,
    "i16": np.int16, "i32": np.int32,
}  # fmt: skip
_ALIGNMENT = 64


@dataclass(frozen=True)
class Prepared:
    """Compiled code with its arguments in place. `buffers` are views without padding."""

    buffers: dict[str, Array]
    code: LoadedCode
    addresses: Array
    sizes: Array
    functions: list[Array]

    def call(self) -> None:
        """Run it on this thread."""
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        entry = ctypes.CFUNCTYPE(None, pointer, pointer, number, number, pointer)(self.code.address)
        entry(self.addresses.ctypes.data, self.sizes.ctypes.data, 0, 1, None)


def run(
    f: Func, target: Target, sizes: Mapping[str, int], index: Mapping[str, Array], buffers: Mapping[str, Array]
) -> dict[str, Array]:
    """Compile and run `f`; gives its state and scratch buffers. See `prepare`."""
    prepared = prepare(f, target, sizes, index, buffers)
    prepared.call()
    results = (b.name for b in f.buffers if b.scope in (Scope.STATE, Scope.SCRATCH))
    return {name: prepared.buffers[name] for name in results}


def prepare(
    f: Func,
    target: Target,
    sizes: Mapping[str, int],
    index: Mapping[str, Array],
    buffers: Mapping[str, Array],
    threads: int = 1,
) -> Prepared:
    """Compile `f` and lay out its arguments, for a team of so many threads.

    `index` gives the arrays of the index functions, `buffers` the contents of any buffers; packed buffers are made
    from the params. What is not given is NaN.
    """
    dtypes = {b.name: b.dtype for b in f.buffers}
    given = dict(buffers) | {p.buffer: pack(p, buffers, dtypes[p.buffer]) for p in f.packings}
    functions = [np.ascontiguousarray(index[i.name], dtype=np.int32) for i in f.index_functions]
    in_memory = [b for b in f.buffers if b.scope is not Scope.REGISTER]
    stored = [_storage(b, sizes, given.get(b.name), threads) for b in in_memory]
    views = {
        b.name: array[tuple(slice(_extent(e, sizes)) for e in b.shape)]
        for b, array in zip(in_memory, stored, strict=True)
    }
    addresses = np.array([a.ctypes.data for a in (*functions, *stored)], dtype=np.uint64)
    values = np.array([*(sizes[name] for name in f.sizes), 0], dtype=np.int64)  # nobody stops it
    built = build(f, target)
    return Prepared(views, load(built.code, built.entry), addresses, values, functions)


def _storage(b: Buffer, sizes: Mapping[str, int], value: Array | None, threads: int) -> Array:
    """The memory of a buffer, padded and aligned as the code expects it; of one per thread, the first thread's copy."""
    shape = tuple(_extent(e, sizes) for e in extents(b))
    dtype = np.dtype(_DTYPES[b.dtype])
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    stride = {Scope.PRIVATE: private_stride(b) * dtype.itemsize, Scope.COPIED: size}.get(b.scope, 0)
    others = (threads - 1) * stride
    raw = np.zeros(size + others + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    array: Array = raw[start : start + size].view(dtype).reshape(shape)
    if b.dtype == "f32":
        array.fill(np.nan)
    if value is not None:
        array[tuple(slice(n) for n in value.shape)] = value
    return array


def _extent(e: Expr, sizes: Mapping[str, int]) -> int:
    value = simplify(substitute(e, {name: Int(n) for name, n in sizes.items()}))
    if not isinstance(value, Int):
        raise InternalError(f"the extent {e} needs a size that was not given")
    return value.value
