"""PlaceItemBarriers: make the items of a work-group wait for each other where one needs what another wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortex.ilir.ir import ITEMS, Barrier, For, Func, LoopKind, Scope, Stmt
from cortex.ir.node import walk
from cortex.ir.scalar import Var
from cortex.ir.simplify import substitute
from cortex.ir.step import Step, step
from cortex.poly.quick import QuickRules
from cortex.schedule.barrier import Placer, written
from cortex.schedule.items import OF_ITEMS
from cortex.schedule.ownership import Around, Touch, Use, clash, shared_out, touches, use_by_all

_BLOCK = "the iteration of a parallel loop"
"""The name that the variables of all parallel loops get: one work-group runs all that is compared."""


@step
class PlaceItemBarriers(Step[Func]):
    """Put an item barrier where an item may meet others of its work-group at something done since the last barrier.

    before:  for p parallel: { for l items x: part[l] = ...; for one in 0..1 items x: t[p] = part[0] + part[1] + ... }
    after:   for p parallel: { for l items x: part[l] = ...; item barrier; for one in 0..1 items x: ...; item barrier }
    legal:   always; it follows `PlaceBarriers`, whose barriers are among items too.

    An element that the same item uses again needs none: loops of items with equal bounds give an item the same
    iterations. Item barriers that were there are placed anew.
    """

    def apply(self, f: Func) -> Func:
        """`f` with item barriers."""
        placer = Placer(Barrier("items"), is_items, _OfItems(f))
        body, _ = placer.block(f.body, frozenset(), Around())
        return replace(f, body=body)


def is_items(s: Stmt) -> bool:
    """Is `s` a loop of items?"""
    return isinstance(s, For) and s.kind in ITEMS


@dataclass(frozen=True)
class _ItemUse:
    """A use seen by threads of the team, and by items along each axis. `of_group` is memory that a work-group has.

    `outside` are the loops around the parallel loop that it stands in.
    """

    parallel: str | None
    outside: frozenset[str]
    team: Use
    x: Use
    y: Use
    of_group: bool


class _OfItems:
    """The uses by items of one work-group."""

    def __init__(self, f: Func) -> None:
        self.f = f
        self.known = QuickRules.of(f)
        self.written = written(f, OF_ITEMS)
        self.local = {b.name for b in f.buffers if b.scope is Scope.LOCAL}
        self.cache: dict[int, frozenset[_ItemUse]] = {}

    def touched_by(self, s: Stmt) -> bool:
        return any(getattr(n, "buffer", None) in self.written for n in walk(s))

    def of(self, s: Stmt, at: Around) -> frozenset[_ItemUse]:
        if id(s) not in self.cache:
            found = touches(self.f, (s,), at, OF_ITEMS)
            self.cache[id(s)] = frozenset(self.use(t) for t in found if t.buffer in self.written)
        return self.cache[id(s)]

    def use(self, t: Touch) -> _ItemUse:
        loops = {loop.kind: loop for loop in t.around.loops if loop.kind in ITEMS}
        by_all = use_by_all(self.known, t)
        x, y = (self.along(t, by_all, loops.get(axis)) for axis in (LoopKind.ITEMS_X, LoopKind.ITEMS_Y))
        names = [loop.var for loop in t.around.loops]
        parallel = None if t.around.parallel is None else t.around.parallel.var
        outside = names if parallel is None else names[: names.index(parallel)]
        team = shared_out(self.known, t, by_all, t.around.parallel)
        return _ItemUse(parallel, frozenset(outside), team, x, y, t.buffer in self.local)

    def along(self, t: Touch, by_all: Use, loop: For | None) -> Use:
        use = shared_out(self.known, t, by_all, loop)
        block = t.around.parallel
        if block is None:
            return use
        name = {block.var: Var(_BLOCK)}
        places = (
            p and replace(p, offset=substitute(p.offset, name), length=p.length and substitute(p.length, name))
            for p in use.places
        )
        bounds = use.bounds and (substitute(use.bounds[0], name), substitute(use.bounds[1], name))
        return replace(use, places=tuple(places), bounds=bounds)

    def clash(self, x: _ItemUse, y: _ItemUse, stale: frozenset[str]) -> bool:
        """May two items meet? They do if they may differ in one of the axes.

        Iterations of one run of a parallel loop do not meet in what the team shares. Of two loops, iterations that
        cannot meet unless they are the same one are compared as such; else what depends on the iteration tells nothing.
        """
        same_run = x.parallel is not None and x.parallel == y.parallel and not stale & y.outside
        if same_run and x.parallel in stale and not x.of_group:
            return False
        if x.of_group or x.parallel is None or clash(x.team, y.team, stale):
            stale = stale | {_BLOCK}
        return clash(x.x, y.x, stale) or clash(x.y, y.y, stale)
