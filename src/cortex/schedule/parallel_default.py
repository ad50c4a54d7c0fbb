"""How a scheduled function is shared among threads: by output columns, by nodes, or by whole trees.

It looks at loops, like the default schedule whose steps it follows.

    columns   Each nest is given the outermost loop over blocks of output columns that can be parallel; blocks of equal
              width everywhere, so that a thread that wrote some columns is the one that reads them and needs no
              barrier. A nest with too few columns is shared out by nodes. What takes little to compute and is needed
              whole by every thread, such as sums of children's states, every thread computes for itself.
    nodes     The nodes of each group are shared out; a nest whose nodes cannot be is shared out by columns.
    trees     The loop over groups is run for whole structures, without a barrier; the nests before and after it are
              shared out by nodes. Good for requests of many structures, and of no use for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cortex.ilir.ir import Accumulate, Barrier, For, Func, If, LoopKind, Scope, Stmt, Store, Switch
from cortex.ilir.statements import statements
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.ir.simplify import free_vars
from cortex.ir.step import Step, attempt
from cortex.poly.quick import QuickRules
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.locate import constant_extent
from cortex.schedule.ownership import Around, Touch, place, touches
from cortex.schedule.parallel import Alone, Parallel, is_parallel
from cortex.schedule.parallel_trees import ParallelTrees
from cortex.schedule.persist import Persist
from cortex.schedule.replicate import Replicate

LEAST_WORK = 8192
"""Multiply-adds per node below which two threads are not faster than one: a barrier takes as long as the work."""

MOST_REPEATED = 4096
"""Elements of a row that every thread may compute for itself, times the threads that do so in vain: for some rows, that
takes less than waiting for others."""

Sharing: TypeAlias = Literal["columns", "nodes", "trees"]


@dataclass(frozen=True)
class _Candidate:
    """A loop that may be parallel. `width` is the number of columns an iteration writes; 0 for other loops."""

    loop: For
    width: int

    @property
    def iterations(self) -> int:
        """Their number, where it is the same in every group; else 0."""
        return constant_extent(self.loop) or 0


@dataclass(frozen=True)
class _Nest:
    """The loops of a nest that may be parallel, outermost first; its multiply-adds per row; see `_is_copied`."""

    found: list[_Candidate]
    products: int
    is_copied: bool

    def columns(self, threads: int) -> list[_Candidate]:
        """The loops over blocks of columns that have work for all threads; none where columns do not matter."""
        return [] if self.is_copied else [c for c in self.found if c.width and c.iterations >= threads]


def parallel_schedule(
    f: Func, threads: int, mapping: Sharing | None = None, least_work: int = LEAST_WORK
) -> tuple[Step[Func], ...]:
    """The steps that let `threads` threads run a scheduled function; none where that does not pay.

    The function computes the same on any number of threads; `threads` only says for how many it should be good.
    Without a `mapping`, it is shared out by columns.
    """
    return share_out(f, threads, mapping, least_work)[0]


def share_out(
    f: Func, threads: int, mapping: Sharing | None = None, least_work: int = LEAST_WORK
) -> tuple[tuple[Step[Func], ...], Func]:
    """The steps of `parallel_schedule`, and `f` after them.

    Copies for every thread are made where that saves barriers, as they take memory.
    """
    steps, shared = _share_out(f, threads, mapping, least_work, copies=True)
    if any(isinstance(s, Replicate) for s in steps):
        without = _share_out(f, threads, mapping, least_work, copies=False)
        if _barriers(without[1]) <= _barriers(shared):
            return without
    return steps, shared


def _barriers(f: Func) -> int:
    return sum(isinstance(s, Barrier) for s in statements(f.body))


def _share_out(
    f: Func, threads: int, mapping: Sharing | None, least_work: int, copies: bool
) -> tuple[tuple[Step[Func], ...], Func]:
    by_trees = mapping == "trees"  # one barrier or two in all: what it pays for is up to the request
    if threads < 2 or not (by_trees or is_worth_sharing(f, least_work)):
        return (), f
    steps: list[Step[Func]] = []
    if by_trees and (new := attempt(f, ParallelTrees())) is not None:
        steps.append(ParallelTrees())
        f = new
    nests = [_Nest(_candidates(f, s, a), _products((s,)), _is_copied(s, a)) for s, a in _nests(f.body, Around())]
    width = _common_width(nests, threads)
    if copies and mapping in (None, "columns"):
        for each in _by_every_thread(f, threads):
            if (new := attempt(f, each)) is not None:
                steps.append(each)
                f = new
    for nest in nests:
        for step in _preferred(nest, threads, width, mapping in ("nodes", "trees")):
            if (new := attempt(f, step)) is not None:
                steps.append(step)
                f = new
                break
    if not steps:
        return (), f
    for last in (Alone(), PlaceBarriers()):
        f = last.apply(f)
        steps.append(last)
    weights = (Persist(b.name) for b in f.buffers if b.scope is Scope.PACKED)
    return (*steps, *(step for step in weights if attempt(f, step) is not None)), f


def _nests(body: tuple[Stmt, ...], around: Around) -> list[tuple[For, Around]]:
    """The nests of a function: before the recursion, and one list per kind inside it."""
    found: list[tuple[For, Around]] = []
    for s in body:
        if is_parallel(s):
            continue
        if isinstance(s, For) and any(isinstance(inner, If) for inner in s.body):
            within = Around((*around.loops, s), around.lets)
            for arm in s.body:
                if isinstance(arm, If):
                    found += [*_nests(arm.then, within), *_nests(arm.orelse, within)]
        elif isinstance(s, For):
            found.append((s, around))
    return found


def _candidates(f: Func, nest: For, around: Around) -> list[_Candidate]:
    """The loops of a nest that own part of everything it writes, outermost first."""
    known = QuickRules.of(f)
    written = [t for t in touches(f, (nest,), around) if t.writes]
    found: list[_Candidate] = []
    for loop in (n for n in walk(nest) if isinstance(n, For) and n.kind is LoopKind.SERIAL):
        inside = [t for t in written if any(each.var == loop.var for each in t.around.loops)]
        places = [[place(known, e, t.around, loop) for e in t.index] for t in inside]
        if not places or not all(any(p) for p in places):
            continue
        by_column = all(p[-1] is not None and len(p) > 1 for p in places) and constant_extent(loop) is not None
        width = max((p[-1].width for p in places if p[-1] is not None), default=0) if by_column else 0
        found.append(_Candidate(loop, width))
    return found


def _by_every_thread(f: Func, threads: int) -> Iterator[Replicate]:
    """For each nest inside the recursion whose rows others need whole and that is little work: every thread's own."""
    found = [(s, list(touches(f, (s,), around))) for s, around in _nests(f.body, Around()) if around.loops]
    made = {t.buffer for _, each in found for t in each if t.writes}
    scratch = {b.name for b in f.buffers if b.scope is Scope.SCRATCH}
    by_all: set[str] = set()
    for nest, each in found:
        written = {t.buffer for t in each if t.writes}
        needed = {t.buffer for t in each if not t.writes and t.buffer in scratch & made}
        if not written <= scratch or not needed <= by_all | written or _is_product(nest):
            continue
        if _elements((nest,)) * (threads - 1) > MOST_REPEATED:
            continue
        if any(_reads_whole(those, written) for other, those in found if other is not nest):
            by_all |= written
            yield Replicate(tuple(sorted(written)))


def _is_product(nest: For) -> bool:
    """Is there a sum of a fixed number of terms in a nest?"""
    written = {v for n in walk(nest) if isinstance(n, Store | Accumulate) for v in free_vars(n.index)}
    loops = (n for n in walk(nest) if isinstance(n, For))
    return any(loop.var not in written and (constant_extent(loop) or 0) > 1 for loop in loops)


def _reads_whole(found: list[Touch], buffers: set[str]) -> bool:
    """Does a nest with these accesses sum over the columns of one of `buffers`?"""
    kept = {v for t in found if t.writes for e in t.index for v in free_vars(t.around.expand(e))}
    for t in found:
        if not t.writes and t.buffer in buffers:
            summed = {loop.var for loop in t.around.loops} - kept
            if any(free_vars(t.around.expand(e)) & summed for e in t.index[-1:]):
                return True
    return False


def _is_copied(nest: For, around: Around) -> bool:
    """Are rows filled ahead of the recursion, without sums?"""
    return not around.loops and not any(isinstance(n, Accumulate) for n in walk(nest))


def _common_width(nests: list[_Nest], threads: int) -> int:
    """The number of columns that threads share out as one: that of some nest's blocks, the widest where all are even.

    A thread should have no more than its part of the columns: of 384, three blocks of 128 give one of two threads 256,
    and six of 64 do not. A nest of other blocks than these needs a barrier on both sides.
    """

    def cost(width: int) -> float:
        total = 0.0
        for nest in nests:
            for c in nest.columns(threads)[:1]:
                blocks = c.iterations // _grain(c, width, threads)
                busiest = -(-blocks // threads) * threads / blocks
                is_apart = c.width * (c.iterations // blocks) != width
                total += busiest * nest.products + is_apart * LEAST_WORK
        return total

    widths = {c.width for nest in nests for c in nest.columns(threads)}
    return min(sorted(widths, reverse=True), key=cost, default=1)


def _grain(c: _Candidate, width: int, threads: int) -> int:
    """How many iterations of a loop over blocks of columns are `width` columns; 1 where that leaves threads idle."""
    grain = width // c.width if c.width and width % c.width == 0 else 1
    return grain if c.iterations % grain == 0 and c.iterations // grain >= threads else 1


def _preferred(nest: _Nest, threads: int, width: int, nodes_first: bool) -> Iterator[Parallel]:
    """First partitions that are the same in every group and have work for all, columns before others; then nodes.

    Rows that are only copied come from memory, and a thread is better given whole stretches of them than every other
    line: the outermost of the axes of a row.
    """
    fixed = [c for c in nest.found if c.iterations >= threads]
    columns = nest.columns(threads)
    nodes = [c for c in nest.found if not c.iterations]
    for c in (*(nodes if nodes_first else ()), *columns, *fixed, *nodes, *nest.found):
        yield Parallel(c.loop.var, _grain(c, width, threads))


def is_worth_sharing(f: Func, least_work: int = LEAST_WORK) -> bool:
    """Has a node so much work, in multiply-adds, that several threads may be faster than one?"""
    return sum(_products((s,)) for s, _ in _nests(f.body, Around())) >= least_work


def _elements(body: tuple[Stmt, ...]) -> int:
    """Elements that statements compute per row."""
    return _runs(body, (Store, Accumulate))


def _products(body: tuple[Stmt, ...]) -> int:
    """Multiply-adds of statements per row."""
    return _runs(body, (Accumulate,))


def _runs(body: tuple[Stmt, ...], of: tuple[type[Stmt], ...], times: int = 1) -> int:
    """How often statements of these types run per row, in a list that runs so many times."""
    total = 0
    for s in body:
        match s:
            case For(lo=Int(lo), hi=Int(hi)):
                total += _runs(s.body, of, times * (hi - lo))
            case For():
                total += _runs(s.body, of, times)
            case Switch(_, cases):  # on the number of rows
                total += max((_runs(c.body, of, times) // max(1, c.value) for c in cases), default=0)
            case _:
                total += times * isinstance(s, of)
    return total
