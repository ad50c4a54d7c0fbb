"""Memory of a request: what a compiled model takes for it, and the peak of a PyTorch program.

Both count the data of tensors, not Python's objects. What Cortex takes follows from the program: its arrays are laid
out in one piece before it runs, so their sum is the peak. PyTorch's is the largest sum of live allocations that its
profiler saw, call of the allocator by call. (Resident memory of the process would count what the allocators keep, and
on a CPU they keep megabytes.) Weights are in neither; `weight_bytes` counts the copies that Cortex keeps.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from cortex.ilir.ir import Buffer, Func, Scope
from cortex.ilir.private import copied_rows, private_stride
from cortex.ir.scalar import Int, Var
from cortex.lower.linear_form import LinearForm
from cortex.runtime.executable import Executable

ELEMENT = 4  # bytes; everything in a workspace is f32 or i32


def request_bytes(f: Func, form: LinearForm, threads: int, answer: int) -> int:
    """The arrays of one call: the linear form, states of all nodes, scratch, and an answer of `answer` bytes."""
    linear: int = sum(ELEMENT * array.size for array in (*form.arrays.values(), *form.fields.values()))
    return linear + sum(_bytes(b, form, threads) for b in f.buffers) + answer


def state_bytes(f: Func, form: LinearForm) -> int:
    """The states of all nodes of a request, which users may read after the call."""
    return sum(_bytes(b, form, 1) for b in f.buffers if b.scope is Scope.STATE)


def weight_bytes(fast: Executable) -> dict[str, int]:
    """What a compiled model keeps beside the weights as they were given: packed weights, and tables."""
    packed = sum(ELEMENT * _elements(b) for b in fast.compiled.func.buffers if b.scope is Scope.PACKED)
    return {"packed": packed, "tables": sum(fast.tables.values())}


def torch_peak_bytes(run: Callable[[], Any]) -> int:
    """The most bytes of tensors that were alive at once while `run` ran, beyond what was alive before."""
    from torch.profiler import ProfilerActivity, profile

    with _silent(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    live = peak = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak


@contextmanager
def _silent() -> Iterator[None]:
    """Without what the profiler's library writes to standard error whenever it starts and stops."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _bytes(b: Buffer, form: LinearForm, threads: int) -> int:
    match b.scope:
        case Scope.STATE | Scope.SCRATCH:
            rows = b.shape[0] if b.shape else Int(1)
            count = form.sizes[rows.name] if isinstance(rows, Var) else 1
            return ELEMENT * count * _elements(b)
        case Scope.PRIVATE:
            return ELEMENT * private_stride(b) * threads
        case Scope.COPIED:
            size, elements = copied_rows(b)
            return ELEMENT * elements * (1 if size is None else form.sizes[size]) * threads
        case _:  # weights, fields of the linear form, registers
            return 0


def _elements(b: Buffer) -> int:
    """Elements of a buffer, or of one row of it where their number varies, padding included."""
    extents = [e.value for e in b.shape if isinstance(e, Int)]
    if extents:
        extents[-1] = -(-extents[-1] // b.align) * b.align
    return prod(extents)
