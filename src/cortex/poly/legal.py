"""May the order of a program be changed? What the steps of a schedule ask.

Each `why_not_...` answers None for yes, or the two accesses that stand against it. Three tiers answer, cheapest first:

    quick          rules on the form of the program (no isl, no prover): all that a default compilation needs
    dependences    exact relations by isl where indices are affine
    prove          the declared facts of index functions, by Z3 within its budget: "not proven" is never "yes"

The last two are imported when the first cannot say yes, so that compiling by the default schedule loads neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cortex.ilir.ir import ITEMS, For, Func, LoopKind, Stmt
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Int, Load, Var
from cortex.poly import order as orders
from cortex.poly.accesses import Access
from cortex.poly.conflict import Conflict
from cortex.poly.extent import is_multiple
from cortex.poly.order import Order
from cortex.poly.points import le, lt, point_of
from cortex.poly.quick import QuickRules

if TYPE_CHECKING:
    from cortex.poly.dependences import Dependences

Block = tuple[Stmt, ...]
Chain = tuple[For, ...]
Pair = tuple[Access, Access]

_AT_ONCE = (LoopKind.VECTORIZED, LoopKind.PARALLEL, *ITEMS)


def why_not_any_order(f: Func, chain: Chain, own: frozenset[str] = frozenset()) -> Conflict | None:
    """May the iterations of a nest run in any order, or at once? Each has its own copy of the buffers `own`."""
    known, body, names = QuickRules.of(f), chain[-1].body, _names(chain)

    def apart(x: Access, y: Access) -> bool:
        return x.buffer in own or all(known.aligned(x, y, name) for name in names)

    return _first_conflict(f, names[0], known.conflicts(body, body, chain), apart, orders.earlier(names))


def why_not_fuse(f: Func, known: QuickRules, around: Chain, earlier: Iterable[Block], later: Block) -> Conflict | None:
    """May `later` run inside the loops `around` right after `earlier`, which ran before in such loops of its own?

    All loops of `around` but the last are shared already. Both bodies use the names of `around`. `known` are the quick
    rules of `f`, of which this is asked for every nest at every level.
    """
    names = _names(around)
    same: Order = (tuple((name, "=") for name in names[:-1]),)
    last = (names[-1],)
    against = orders.different(last) if _in_any_order(around[-1]) else orders.later(last)

    def within(x: Access, y: Access) -> bool:
        return known.aligned(x, y, names[-1])

    pairs = (pair for body in earlier for pair in known.conflicts(body, later, around))
    return _first_conflict(f, names[0], pairs, within, orders.both(same, against))


def why_not_distribute(f: Func, chain: Chain) -> Conflict | None:
    """May the statements in a nest run in nests of their own, one after the other?"""
    known, names = QuickRules.of(f), _names(chain)
    body = chain[-1].body
    pairs = (p for number, s in enumerate(body) for p in known.conflicts(body[:number], (s,), chain))
    return _first_conflict(f, names[0], pairs, lambda x, y: not known.loose(x, y, names), orders.later(names))


def why_not_reorder(
    f: Func, chain: Chain, new: Sequence[str], conditions: tuple[Expr, ...], body: Block
) -> Conflict | None:
    """May the loops of a nest, around a `body` that runs under `conditions`, be nested in the order `new`?"""
    known, names = QuickRules.of(f), _names(chain)
    against = orders.both(orders.earlier(names), orders.later(new))
    for number, name in enumerate(new):
        if _in_any_order(next(loop for loop in chain if loop.var == name)):
            outside: Order = (tuple((other, "=") for other in new[:number]),)
            against = (*against, *orders.both(outside, orders.earlier((name,))))

    def kept(x: Access, y: Access) -> bool:
        loose = known.loose(x, y, names)
        return [name for name in new if name in loose] == list(loose)

    return _first_conflict(f, names[0], known.conflicts(body, body, chain, conditions), kept, against)


def why_not_swap(f: Func, at: str, a: Block, b: Block, aside: frozenset[str] = frozenset()) -> Conflict | None:
    """May `a` and `b`, which stand where the loop `at` does, change places? What they do to `aside` does not count."""
    pairs = (pair for pair in QuickRules.of(f).conflicts(a, b) if pair[0].buffer not in aside)
    return _first_conflict(f, at, pairs, lambda x, y: False, orders.ANY)


def same_bounds(f: Func, at: str, a: For, b: For) -> bool:
    """Do two loops that stand where the loop `at` does always have the same bounds? Memory may change in between."""
    if any(isinstance(n, Load) for e in (a.lo, a.hi, b.lo, b.hi) for n in walk(e)):
        return False
    unlike = [(x, y) for x, y in ((a.lo, b.lo), (a.hi, b.hi)) if x != y]
    if any(isinstance(x, Int) and isinstance(y, Int) for x, y in unlike):
        return False
    return not unlike or _proven(f, at, (), *(Binary("eq", x, y) for x, y in unlike))


def divides(f: Func, at: str, factor: int, extent: Expr) -> bool:
    """Is `extent`, where the loop `at` stands, always a multiple of `factor`?"""
    if is_multiple(factor, extent) or isinstance(extent, Int):
        return is_multiple(factor, extent)
    return _proven(f, at, (), Binary("eq", Binary("mod", extent, Int(factor)), Int(0)))


def stays_between(f: Func, at: str, row: Access, first: Expr, end: Expr) -> bool:
    """Is the row of an access, in a text that stands where the loop `at` does, always one of `first` to `end` - 1?"""
    bounds = (e for loop in row.loops for e in (le(loop.lo, Var(loop.var)), lt(Var(loop.var), loop.hi)))
    return _proven(f, at, (*bounds, *row.conditions), le(first, row.index[0]), lt(row.index[0], end))


def leaves_out_only(f: Func, loops: Chain, loop: For, place: Expr, size: int) -> bool:
    """Is every iteration of the last of `loops` that `loop` leaves out one where `place` is not in 0..size?"""
    from cortex.poly.left_out import left_out_within

    return left_out_within(f, loops, loop, place, size) is False


def _in_any_order(loop: For) -> bool:
    """Must the iterations of a loop not depend on each other?"""
    return loop.kind in _AT_ONCE or loop.turned is not None


def _names(chain: Chain) -> tuple[str, ...]:
    return tuple(loop.var for loop in chain)


def _first_conflict(
    f: Func, at: str, pairs: Iterable[Pair], quickly: Callable[[Access, Access], bool], order: Order
) -> Conflict | None:
    """The first pair that may meet in runs that lie as `order` says, in a text that stands where the loop `at` does."""
    exact: Dependences | None = None
    for x, y in pairs:
        if quickly(x, y):
            continue
        if exact is None:
            from cortex.poly.dependences import Dependences

            exact = Dependences(f, at)
        found = exact.conflict(x, y, order)
        if found is not None:
            return found
    return None


def _proven(f: Func, at: str, given: tuple[Expr, ...], *goals: Expr) -> bool:
    """Do all `goals` hold where the loop `at` stands, under `given`?"""
    from cortex.poly.prove import Prover

    prover, here = Prover(f), point_of(f, at).given
    return all(prover.implied((*here, *given), goal) for goal in goals)
