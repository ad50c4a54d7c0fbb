"""The shape of a nest's body: sums first, then everything that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cortex.ilir.ir import Accumulate, For, Stmt, Store
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Expr, Load, Var
from cortex.ir.simplify import free_vars, substitute
from cortex.poly.accesses import accesses
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block


@dataclass(frozen=True)
class Reduction:
    """Loops around accumulations; loops of equal bounds have been run together."""

    loops: tuple[For, ...]
    body: Block


@dataclass(frozen=True)
class Sums:
    """A body taken apart: start values, reductions, the rest; `targets` are the elements summed into."""

    starts: Block
    reductions: tuple[Reduction, ...]
    rest: Block
    targets: dict[str, tuple[Expr, ...]]

    @property
    def continued(self) -> dict[str, tuple[Expr, ...]]:
        """The elements that are summed into but not started here."""
        started = {s.buffer for s in self.starts if isinstance(s, Store)}
        return {b: index for b, index in self.targets.items() if b not in started}


def split_sums(known: QuickRules, around: tuple[For, ...], body: Block) -> Sums | None:
    """Take a body inside the loops `around` apart; None when that would reorder dependences.

    before:  a = 0; for k: a += x[k]; b = 0; for q: b += y[q]; c = a + b
    after:   starts a = 0, b = 0; one reduction k: { a += x[k]; b += y[k] }; rest c = a + b

    Reductions of equal bounds run together unless they add to the same element: two sums into one accumulator
    would wait for each other.
    """
    targets: dict[str, tuple[Expr, ...]] = {}
    for s in body:
        if isinstance(s, For):
            found = _accumulations(s)
            if found is None:
                return None
            inside = {n.var for n in walk(s) if isinstance(n, For)}
            for a in found:
                if free_vars(a.index) & inside:
                    return None  # elements of a row, not a sum into one element
                if targets.setdefault(a.buffer, a.index) != a.index:
                    return None
    starts: list[Stmt] = []
    reductions: list[Reduction] = []
    rest: list[Stmt] = []
    used: set[str] = set()  # sums that the rest has read or written so far
    for s in body:
        if isinstance(s, For):
            if used & _targets(tuple(n for n in walk(s) if isinstance(n, Accumulate))):
                return None
            _merge(reductions, s)
        elif isinstance(s, Store) and s.buffer in targets and s.buffer not in used and not _loads(s.value):
            if any(s.buffer == a.buffer for r in reductions for a in accesses(r.body)):
                return None
            starts.append(s)
        else:
            rest.append(s)
            used |= {a.buffer for a in accesses((s,))} & set(targets)
    sums = tuple(For(r.loops[0].var, r.loops[0].lo, r.loops[0].hi, r.body) for r in reductions)
    if any(x.buffer not in targets for x, _ in known.conflicts(sums, tuple(rest), around)):
        return None
    if any(a.buffer in targets and not a.writes for r in reductions for a in accesses(r.body)):
        return None
    for use in accesses(tuple(rest)):
        if use.buffer in targets and use.index != targets[use.buffer]:
            return None
    return Sums(tuple(starts), tuple(reductions), tuple(rest), targets)


def _loads(e: Expr) -> bool:
    return any(isinstance(n, Load) for n in walk(e))


def _accumulations(loop: For) -> list[Accumulate] | None:
    """The accumulations of a perfect nest of reduction loops; None for anything else."""
    body = loop.body
    if len(body) == 1 and isinstance(body[0], For):
        return _accumulations(body[0])
    sums = [s for s in body if isinstance(s, Accumulate)]
    return sums if sums and len(sums) == len(body) else None


def _merge(reductions: list[Reduction], loop: For) -> None:
    """Add a reduction, running it together with an earlier one of the same bounds and other targets."""
    loops = [loop]
    while isinstance(loops[-1].body[0], For):
        loops.append(loops[-1].body[0])
    body = loops[-1].body
    bounds = [(each.lo, each.hi) for each in loops]
    for number, first in enumerate(reductions):
        if [(each.lo, each.hi) for each in first.loops] == bounds and not _targets(first.body) & _targets(body):
            names: dict[str, Expr] = {mine.var: Var(other.var) for mine, other in zip(loops, first.loops, strict=True)}
            reductions[number] = Reduction(first.loops, (*first.body, *substitute(body, names)))
            return
    reductions.append(Reduction(tuple(loops), body))


def _targets(body: Block) -> set[str]:
    return {s.buffer for s in body if isinstance(s, Accumulate)}


def redirect(body: Block, places: Mapping[str, tuple[str, tuple[Expr, ...]]]) -> Block:
    """`body` with every access of a buffer moved to another buffer and index."""

    def move(n: Node) -> Node:
        match n:
            case Load(buffer) if buffer in places:
                return Load(*places[buffer])
            case Store(buffer, _, value) if buffer in places:
                return Store(*places[buffer], value)
            case Accumulate(buffer, _, fn, value) if buffer in places:
                return Accumulate(*places[buffer], fn, value)
            case _:
                return n

    return tuple(rewrite(s, move) for s in body)
