"""Is a buffer written in whole vectors, at multiples of their length? Only such stores can go past the caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from cortex.ilir.ir import (
    Accumulate,
    Barrier,
    Buffer,
    For,
    Func,
    If,
    Let,
    LoopKind,
    Mark,
    Prefetch,
    Stmt,
    Store,
    Switch,
)
from cortex.ir.node import walk
from cortex.ir.polynomial import Bounds
from cortex.ir.scalar import Binary, Int, Load
from cortex.ir.simplify import affine, free_vars, simplify


def stores_whole_vectors(f: Func, name: str) -> bool:
    """Is every store to a buffer one of a vector, at a multiple of its lanes, if the buffer begins at one?"""
    b = f.buffer(name)
    if any(isinstance(n, Load | Accumulate) and n.buffer == name for n in walk(f)):
        return False
    found = [_is_whole(b, s, loop, bounds) for s, loop, bounds in _stores(f.body, name, None, {})]
    return bool(found) and all(found)


def _stores(
    body: tuple[Stmt, ...], name: str, vector: For | None, bounds: Bounds
) -> Iterator[tuple[Store, For | None, Bounds]]:
    """The stores to a buffer, the vectorized loop around each, and the bounds of the loops around it."""
    for s in body:
        match s:
            case For(var, lo, hi, inner, kind):
                known = (
                    {**bounds, var: (lo.value, hi.value - 1)} if isinstance(lo, Int) and isinstance(hi, Int) else bounds
                )
                yield from _stores(inner, name, s if kind is LoopKind.VECTORIZED else vector, known)
            case If(_, then, orelse):
                yield from _stores((*then, *orelse), name, vector, bounds)
            case Switch(_, cases):
                yield from (found for c in cases for found in _stores(c.body, name, vector, bounds))
            case Store(buffer) if buffer == name:
                yield s, vector, bounds
            case Store() | Accumulate() | Let() | Barrier() | Mark() | Prefetch():
                pass
            case _:
                assert_never(s)


def _is_whole(b: Buffer, s: Store, vector: For | None, bounds: Bounds) -> bool:
    if vector is None or vector.lo != Int(0) or not isinstance(vector.hi, Int) or b.dtype != "f32":
        return False
    lanes, *outer, last = vector.hi.value, *s.index
    form, extent = affine(simplify(last, bounds), vector.var), b.shape[-1]
    if lanes < 2 or lanes & (lanes - 1) or form is None or form[0] != 1 or vector.var in free_vars(tuple(outer)):
        return False
    rows = isinstance(extent, Int) and -(-extent.value // b.align) * b.align % lanes == 0
    return rows and simplify(Binary("mod", form[1], Int(lanes)), bounds) == Int(0)
