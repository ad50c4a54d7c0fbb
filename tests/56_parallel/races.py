"""Find races by running: each thread alone, noting what it touches between one barrier and the next.

The program is translated to Python as the interpreter does, once per thread, with the thread's share of every
parallel loop written out and every barrier turned into a store that starts a new epoch. Two threads race where, in one
epoch, one writes an element that the other reads or writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cortex.ilir.interp import _FUNCTIONS
from cortex.ilir.ir import Barrier, Buffer, For, Func, LoopKind, Scope, Store
from cortex.ilir.to_python import to_python
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Expr, Float, Int

SHARED = (Scope.STATE, Scope.SCRATCH)


class _Epochs:
    """The buffer that barriers write to."""

    def __init__(self) -> None:
        self.number = 0

    def __setitem__(self, at: int, value: float) -> None:
        self.number += 1


class _Memory:
    """A buffer that notes who touches it and holds zeros."""

    def __init__(self, epochs: _Epochs) -> None:
        self.epochs = epochs
        self.reads: dict[int, set[int]] = defaultdict(set)
        self.writes: dict[int, set[int]] = defaultdict(set)

    def __getitem__(self, at: int) -> float:
        self.reads[self.epochs.number].add(at)
        return 0.0

    def __setitem__(self, at: int, value: float) -> None:
        self.writes[self.epochs.number].add(at)


def share_of(f: Func, thread: int, threads: int) -> Func:
    """What one thread of a team runs, as a function of its own; barriers store to the buffer `epoch`."""

    def bound(loop: For, t: int) -> Expr:
        count = Binary("max", Binary("sub", loop.hi, loop.lo), Int(0))
        return Binary("add", loop.lo, Binary("floordiv", Binary("mul", Int(t), count), Int(threads)))

    def visit(n: Node) -> Node:
        match n:
            case For(kind=LoopKind.PARALLEL):
                return replace(n, lo=bound(n, thread), hi=bound(n, thread + 1), kind=LoopKind.SERIAL)
            case Barrier():
                return Store("epoch", (Int(0),), Float(0.0))
            case _:
                return n

    new: Func = rewrite(f, visit)
    return replace(new, buffers=(*f.buffers, Buffer("epoch", "f32", (Int(1),), Scope.SCRATCH)))


def races(f: Func, sizes: Mapping[str, int], index: Mapping[str, Any], threads: int) -> list[str]:
    """A line for each buffer and epoch in which threads race; one for threads that meet different barriers."""
    seen: list[dict[str, _Memory]] = []
    ends: list[int] = []
    for thread in range(threads):
        epochs = _Epochs()
        mine = share_of(f, thread, threads)
        memory = {b.name: _Memory(epochs) for b in f.buffers}
        arrays = [[int(x) for x in index[i.name]] if i.name in index else [] for i in f.index_functions]
        namespace = dict(_FUNCTIONS)
        exec(to_python(mine, check_bounds=False).source, namespace)
        namespace["run"](*(sizes[s] for s in f.sizes), *arrays, *memory.values(), epochs)
        seen.append(memory)
        ends.append(epochs.number)
    found = [] if len(set(ends)) == 1 else [f"threads meet {ends} barriers"]
    for b in f.buffers:
        if b.scope not in SHARED:
            continue
        for t, mine in enumerate(seen):
            for u, other in enumerate(seen):
                for epoch, written in mine[b.name].writes.items() if t != u else ():
                    touched = other[b.name].reads[epoch] | other[b.name].writes[epoch]
                    if both := written & touched:
                        found.append(f"{b.name}: thread {t} writes {min(both)}, which {u} touches, in epoch {epoch}")
    return found
