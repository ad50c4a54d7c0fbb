"""PlaceBarriers: make threads wait for each other where, and only where, one needs what another wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cortex.ilir.ir import Accumulate, Barrier, Case, For, Func, If, Let, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.step import Step, step
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block, refuse
from cortex.schedule.ownership import SHARED, Around, Use, clash, touches, use_of
from cortex.schedule.parallel import is_parallel

# Uses since the last barrier, each with the loops of which it belongs to an earlier iteration.
Pending = frozenset[tuple[Use, frozenset[str]]]


@step
class PlaceBarriers(Step[Func]):
    """Put a barrier before each statement that may meet other threads at something done since the last barrier.

    before:  for g: for p parallel: s[own columns] = sum of the children's h[own columns]
                    for p parallel: h[own columns] = W @ s[all columns]
    after:   for g: for p parallel: s[own columns] = sum of the children's h[own columns]
                    barrier
                    for p parallel: h[own columns] = W @ s[all columns]
                    (none between groups: the sum reads the thread's own columns; but s is written again there,
                    which others may still be reading, so one is)
    legal:   states and scratch are written in parallel loops only (`Alone` sees to the rest).

    Barriers that were there are placed anew. Reads after writes, writes after reads and writes after writes count;
    a loop is gone round until nothing new comes back from its end to its beginning.
    """

    def apply(self, f: Func) -> Func:
        """`f` with barriers."""
        shared = {b.name for b in f.buffers if b.scope in SHARED}
        if bad := next(_written_by_all(f.body, shared), None):
            refuse(self, f"every thread would write {bad!r}, which is shared.", f, "")
        placer = _Placer(f)
        body, _ = placer.block(f.body, frozenset(), Around())
        return replace(f, body=body)


def _written_by_all(body: Block, shared: set[str]) -> Iterator[str]:
    for s in body:
        match s:
            case Store(buffer) | Accumulate(buffer) if buffer in shared:
                yield buffer
            case For() if not is_parallel(s):
                yield from _written_by_all(s.body, shared)
            case If(_, then, orelse):
                yield from _written_by_all((*then, *orelse), shared)
            case Switch(_, cases):
                for c in cases:
                    yield from _written_by_all(c.body, shared)
            case _:
                pass


class _Placer:
    """Goes through a function in the order it runs, keeping the uses since the last barrier."""

    def __init__(self, f: Func) -> None:
        self.f = f
        self.known = QuickRules.of(f)
        shared = {b.name for b in f.buffers if b.scope in SHARED}
        self.written = shared & {n.buffer for n in walk(f) if isinstance(n, Store | Accumulate)}
        self.cache: dict[int, frozenset[Use]] = {}

    def block(self, body: Block, pending: Pending, at: Around) -> tuple[Block, Pending]:
        new: list[Stmt] = []
        for s in body:
            match s:
                case Barrier():
                    continue
                case For() if not is_parallel(s) and self.concerned(s):
                    stmts, pending = self.loop(s, pending, at)
                    new += stmts
                    continue
                case If(cond, then, orelse) if self.concerned(s):
                    then, after_then = self.block(then, pending, at)
                    orelse, after_else = self.block(orelse, pending, at)
                    s, pending = If(cond, then, orelse), after_then | after_else
                case Switch(value, cases) if self.concerned(s):
                    arms = [self.block(c.body, pending, at) for c in cases]
                    s = Switch(value, tuple(Case(c.value, arm) for c, (arm, _) in zip(cases, arms, strict=True)))
                    pending = pending.union(*(after for _, after in arms))
                case _:
                    mine = self.uses(s, at)
                    if any(clash(x, y, stale) for x, stale in pending for y in mine):
                        new.append(Barrier())
                        pending = frozenset()
                    pending |= {(use, frozenset()) for use in mine}
            new.append(s)
            if isinstance(s, Let):
                at = replace(at, lets={**at.lets, s.var.name: s.value})
        return tuple(new), pending

    def loop(self, s: For, pending: Pending, at: Around) -> tuple[Block, Pending]:
        """A serial loop: what its end leaves pending meets its beginning.

        Gives the statements that replace it: a loop that needs no barriers for itself has one before it, not inside.
        """
        around = replace(at, loops=(*at.loops, s))
        if pending:
            (alone,), after = self.loop(s, frozenset(), at)
            if not any(isinstance(n, Barrier) for n in walk(alone)):
                if any(clash(x, y, stale) for x, stale in pending for y in self.uses(s, at)):
                    return (Barrier(), alone), after
                return (alone,), pending | after
        before = pending
        while True:
            body, after = self.block(s.body, before, around)
            back = frozenset((use, stale | {s.var}) for use, stale in after)
            if back <= before:
                return (replace(s, body=body),), pending | back
            before |= back

    def concerned(self, s: Stmt) -> bool:
        """Does a statement touch anything that threads share?"""
        return any(getattr(n, "buffer", None) in self.written for n in walk(s))

    def uses(self, s: Stmt, at: Around) -> frozenset[Use]:
        """The uses of shared buffers in a statement that somebody writes."""
        if id(s) not in self.cache:
            found = (use_of(self.known, t) for t in touches(self.f, (s,), at) if t.buffer in self.written)
            self.cache[id(s)] = frozenset(found)
        return self.cache[id(s)]
