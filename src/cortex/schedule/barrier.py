"""PlaceBarriers: make threads wait for each other where, and only where, one needs what another wrote."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from cortex.ilir.ir import Accumulate, Barrier, Case, For, Func, If, Let, Scope, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.step import Step, step
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block, refuse
from cortex.schedule.ownership import SHARED, Around, Use, clash, touches, use_of
from cortex.schedule.parallel import is_parallel

U = TypeVar("U")

Pending: TypeAlias = frozenset[tuple[U, frozenset[str]]]
"""Uses since the last barrier, each with the loops of which it belongs to an earlier iteration."""


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
        placer = Placer(Barrier(), is_parallel, _OfTeam(f))
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


class Uses(Protocol[U]):
    """What statements do to the buffers that runners share, and which of it may not happen at once."""

    def touched_by(self, s: Stmt) -> bool:
        """Does a statement touch anything that is shared and written?"""

    def of(self, s: Stmt, at: Around) -> frozenset[U]:
        """The uses of such buffers in a statement that stands `at` a place."""

    def clash(self, x: U, y: U, stale: frozenset[str]) -> bool:
        """May two runners meet at an element? `x` belongs to an earlier iteration of the loops `stale`."""


class _OfTeam:
    """The uses by threads of the team."""

    def __init__(self, f: Func) -> None:
        self.f = f
        self.known = QuickRules.of(f)
        self.written = written(f, SHARED)
        self.cache: dict[int, frozenset[Use]] = {}

    def touched_by(self, s: Stmt) -> bool:
        return any(getattr(n, "buffer", None) in self.written for n in walk(s))

    def of(self, s: Stmt, at: Around) -> frozenset[Use]:
        if id(s) not in self.cache:
            found = (use_of(self.known, t) for t in touches(self.f, (s,), at) if t.buffer in self.written)
            self.cache[id(s)] = frozenset(found)
        return self.cache[id(s)]

    def clash(self, x: Use, y: Use, stale: frozenset[str]) -> bool:
        return clash(x, y, stale)


def written(f: Func, scopes: Collection[Scope]) -> frozenset[str]:
    """The buffers of `scopes` that somebody writes."""
    names = {b.name for b in f.buffers if b.scope in scopes}
    return frozenset(n.buffer for n in walk(f) if isinstance(n, Store | Accumulate) and n.buffer in names)


class Placer(Generic[U]):
    """Goes through a function in the order it runs, keeping the uses since the last barrier.

    `barrier` is put between uses that clash, and never inside a statement that `is_whole`. Barriers of its kind that
    were there go; those among more runners stay, and do what it does.
    """

    def __init__(self, barrier: Barrier, is_whole: Callable[[Stmt], bool], uses: Uses[U]) -> None:
        self.barrier, self.is_whole, self.uses = barrier, is_whole, uses

    def block(self, body: Block, pending: Pending[U], at: Around) -> tuple[Block, Pending[U]]:
        """A statement list with barriers, and the uses that are pending after it."""
        new: list[Stmt] = []
        for s in body:
            match s:
                case Barrier("team") if self.barrier.among == "items":
                    pending = frozenset()
                case Barrier():
                    continue
                case For() if not self.is_whole(s) and self.uses.touched_by(s):
                    stmts, pending = self.loop(s, pending, at)
                    new += stmts
                    continue
                case If(cond, then, orelse) if self.uses.touched_by(s):
                    then, after_then = self.block(then, pending, at)
                    orelse, after_else = self.block(orelse, pending, at)
                    s, pending = If(cond, then, orelse), after_then | after_else
                case Switch(value, cases) if self.uses.touched_by(s):
                    arms = [self.block(c.body, pending, at) for c in cases]
                    s = Switch(value, tuple(Case(c.value, arm) for c, (arm, _) in zip(cases, arms, strict=True)))
                    pending = pending.union(*(after for _, after in arms))
                case _:
                    mine = self.uses.of(s, at)
                    if self.meets(pending, mine):
                        new.append(self.barrier)
                        pending = frozenset()
                    pending |= {(use, frozenset()) for use in mine}
            new.append(s)
            if isinstance(s, Let):
                at = replace(at, lets={**at.lets, s.var.name: s.value})
        return tuple(new), pending

    def loop(self, s: For, pending: Pending[U], at: Around) -> tuple[Block, Pending[U]]:
        """A loop that each runner runs in order: what its end leaves pending meets its beginning.

        Gives the statements that replace it: a loop that needs no barriers for itself has one before it, not inside.
        """
        around = replace(at, loops=(*at.loops, s))
        if pending:
            (alone,), after = self.loop(s, frozenset(), at)
            if self.barrier not in walk(alone):
                if self.meets(pending, self.uses.of(s, at)):
                    return (self.barrier, alone), after
                return (alone,), pending | after
        before = pending
        while True:
            body, after = self.block(s.body, before, around)
            back = frozenset((use, stale | {s.var}) for use, stale in after)
            if back <= before:
                return (replace(s, body=body),), pending | back
            before |= back

    def meets(self, pending: Pending[U], mine: frozenset[U]) -> bool:
        """Does anything pending clash with what comes now?"""
        return any(self.uses.clash(x, y, stale) for x, stale in pending for y in mine)
