"""What a program does, counted: arithmetic by function, elements moved by array.

Only floating-point work counts as arithmetic. A fused multiply-add is one "mul" and one "add", fused or not, so
that the count belongs to the computation and not to the way it is written. An accumulation is an operation, a
load and a store.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import assert_never

from cortex.ilir.ir import Accumulate, Barrier, For, If, Let, Mark, Prefetch, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Fma, Index, Load, Select, Unary, dtype_of


@dataclass
class Counts:
    """Work and data movement, in operations by function and elements by array."""

    flops: Counter[str] = field(default_factory=Counter)
    loads: Counter[str] = field(default_factory=Counter)
    stores: Counter[str] = field(default_factory=Counter)
    index_reads: Counter[str] = field(default_factory=Counter)
    barriers: int = 0
    item_barriers: int = 0

    def add(self, other: Counts, times: int = 1) -> None:
        """Count `other` so many times more."""
        for mine, theirs in (
            (self.flops, other.flops),
            (self.loads, other.loads),
            (self.stores, other.stores),
            (self.index_reads, other.index_reads),
        ):
            for name, n in theirs.items():
                if n * times:
                    mine[name] += n * times
        self.barriers += other.barriers * times
        self.item_barriers += other.item_barriers * times


def count_list(body: tuple[Stmt, ...]) -> Counts:
    """What one run of a statement list does itself, without the lists inside its statements."""
    counts = Counts()
    for s in body:
        match s:
            case For(_, lo, hi, _, _):
                _count(lo, counts)
                _count(hi, counts)
            case If(cond, _, _):
                _count(cond, counts)
            case Switch(value, _) | Let(_, value):
                _count(value, counts)
            case Store(buffer, index, value):
                counts.stores[buffer] += 1
                for e in (*index, value):
                    _count(e, counts)
            case Accumulate(buffer, index, fn, value):
                counts.loads[buffer] += 1
                counts.stores[buffer] += 1
                if dtype_of(value) == "f32":
                    counts.flops[fn] += 1
                for e in (*index, value):
                    _count(e, counts)
            case Barrier("team"):
                counts.barriers += 1
            case Barrier():
                counts.item_barriers += 1
            case Mark(buffer, index):
                counts.stores[buffer] += 1
                for e in index:
                    _count(e, counts)
            case Prefetch():
                pass
            case _:
                assert_never(s)
    return counts


def _count(e: Expr, counts: Counts) -> None:
    for n in walk(e):
        match n:
            case Load(buffer, _, _):
                counts.loads[buffer] += 1
            case Index(fn, _):
                counts.index_reads[fn] += 1
            case Unary(fn, x) | Binary(fn, x, _) if dtype_of(x) == "f32":
                counts.flops[fn] += 1
            case Fma():
                counts.flops.update(("mul", "add"))
            case Select(_, x, _) if dtype_of(x) == "f32":
                counts.flops["select"] += 1
            case _:
                pass
