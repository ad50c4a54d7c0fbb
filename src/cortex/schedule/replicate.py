"""Replicate: let every thread compute temporaries for itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cortex.ilir.ir import Accumulate, For, Func, If, Scope, Store, Switch
from cortex.ilir.private import copied_rows
from cortex.ilir.statements import statements
from cortex.ir.scalar import Int
from cortex.ir.step import Step, step
from cortex.schedule.locate import Block, refuse
from cortex.schedule.ownership import SHARED
from cortex.schedule.parallel import is_parallel

LINE = 16
"""Elements of a cache line, of which no two threads should write parts."""


@step
class Replicate(Step[Func]):
    """Give every thread a copy of temporaries, which it computes for itself, so that none waits for others to do so.

    before:  for p in 0..8 parallel: for n: s[n, own columns] = sum of the children's h[own columns]
             barrier
             for p in 0..8 parallel: for n: h[n, own columns] = W @ s[n, all columns]
    after:   for j in 0..8: for n: s[n, columns j] = sum of the children's h[columns j]        by every thread
             for p in 0..8 parallel: for n: h[n, own columns] = W @ s[n, all columns]
    legal:   the temporaries are of f32 and their rows are whole cache lines; what computes them stands in no parallel
             loop, in nests that compute nothing else.

    Every thread runs the nest, so it pays where that is little beside what else would wait for it.
    """

    buffers: tuple[str, ...]

    def apply(self, f: Func) -> Func:
        """`f` with the temporaries copied."""
        known = {b.name: b for b in f.buffers}
        for name in self.buffers:
            b = known.get(name)
            if b is None or b.scope is not Scope.SCRATCH or b.dtype != "f32":
                refuse(self, f"{name!r} is not a temporary of f32.", f, "")
            if any(not isinstance(e, Int) for e in b.shape[1:]) or copied_rows(b)[1] % LINE:
                refuse(self, f"rows of {name!r} are not whole cache lines; threads would write to the same.", f, "")
        for loop in (s for s in statements(f.body) if isinstance(s, For) and is_parallel(s)):
            if mine := sorted(_written(loop) & set(self.buffers)):
                refuse(self, f"threads share out a loop that computes {mine[0]!r}.", f, loop.var)
        shared = {b.name for b in f.buffers if b.scope in SHARED}
        for nest in _nests(f.body):
            written = _written(nest) & shared
            if written & set(self.buffers) and (others := sorted(written - set(self.buffers))):
                refuse(self, f"{nest.var!r} computes {others[0]!r} as well, for all threads.", f, nest.var)
        copied = (replace(b, scope=Scope.COPIED) if b.name in self.buffers else b for b in f.buffers)
        return replace(f, buffers=tuple(copied))


def _written(loop: For) -> set[str]:
    return {s.buffer for s in statements((loop,)) if isinstance(s, Store | Accumulate)}


def _nests(body: Block) -> Iterator[For]:
    """The nests of a program: before and after the recursion, and those of each kind inside it."""
    for s in body:
        match s:
            case If(_, then, orelse):
                yield from _nests((*then, *orelse))
            case Switch(_, cases):
                for c in cases:
                    yield from _nests(c.body)
            case For() if any(isinstance(inner, If) for inner in s.body):
                yield from _nests(s.body)
            case For():
                yield s
            case _:
                pass
