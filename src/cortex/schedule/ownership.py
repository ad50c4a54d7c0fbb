"""Which thread touches which element: the question behind parallel loops and barriers.

An index that uses the variable p of a parallel loop as `w*p + s + r`, where 0 <= r < w for all loops inside, takes
each of its values in one iteration of p only: the iteration *owns* a block of w rows or columns. Two accesses that
own the same blocks, in parallel loops of the same bounds, meet only within one thread, whatever the number of threads.

    for p in 0..8 parallel: for l in 0..32: t[n, p*32 + l] = ...        owns columns by 32s
    for q in 0..8 parallel: for i in 0..2: for l in 0..16: h[n, q*32 + i*16 + l] = t[n, q*32 + i*16 + l]      so does it
    for q in 0..8 parallel: for k in 0..256: h[n, q] += t[n, k]         reads columns of others
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cortex.ilir.ir import Accumulate, For, Func, If, Let, LoopKind, Scope, Stmt, Store, Switch
from cortex.ir.node import walk
from cortex.ir.polynomial import interval_of
from cortex.ir.scalar import Binary, Expr, Index, Int, Load, Var
from cortex.ir.simplify import add, affine, floordiv, free_vars, mul, sub, substitute
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block

SHARED = (Scope.STATE, Scope.SCRATCH)


@dataclass(frozen=True)
class Around:
    """Where a statement stands: the loops around it, the lets it sees, and what switches around it decided."""

    loops: tuple[For, ...] = ()
    lets: Mapping[str, Expr] = field(default_factory=dict)
    decided: Mapping[str, int] = field(default_factory=dict)

    @property
    def parallel(self) -> For | None:
        """The parallel loop around the statement."""
        return next((loop for loop in self.loops if loop.kind is LoopKind.PARALLEL), None)

    def inside(self, loop: For) -> tuple[For, ...]:
        """The loops inside `loop`."""
        names = [each.var for each in self.loops]
        return self.loops[names.index(loop.var) + 1 :]

    def constant_bounds(self) -> dict[str, tuple[int, int]]:
        """Inclusive limits of the variables of loops with constant bounds."""
        loops = ((x.var, x.lo, x.hi) for x in self.loops)
        return {v: (lo.value, hi.value - 1) for v, lo, hi in loops if isinstance(lo, Int) and isinstance(hi, Int)}

    def expand(self, e: Expr) -> Expr:
        """`e` with the lets written out."""
        used = {v: self.lets[v] for v in free_vars(e) if v in self.lets}
        return self.expand(substitute(e, used)) if used else e


@dataclass(frozen=True)
class Touch:
    """An access of a shared buffer and where it stands."""

    buffer: str
    index: tuple[Expr, ...]
    writes: bool
    around: Around


def statements(body: Block, at: Around) -> Iterator[tuple[Stmt, Around]]:
    """All statements of a list and of the lists inside it, each with where it stands."""
    for s in body:
        yield s, at
        match s:
            case Let(var, value):
                at = replace(at, lets={**at.lets, var.name: value})
            case For():
                yield from statements(s.body, replace(at, loops=(*at.loops, s)))
            case If(_, then, orelse):
                yield from statements(then, at)
                yield from statements(orelse, at)
            case Switch(value, cases):
                for c in cases:
                    decided = {value.name: c.value} if isinstance(value, Var) else {}
                    yield from statements(c.body, replace(at, decided={**at.decided, **decided}))
            case _:
                pass


def touches(f: Func, body: Block, around: Around, scopes: Collection[Scope] = SHARED) -> Iterator[Touch]:
    """All accesses of shared buffers, those of `scopes`, in a statement list."""
    shared = {b.name for b in f.buffers if b.scope in scopes}
    for s, at in statements(body, around):
        for e in expressions_of(s):
            for n in walk(e):
                if isinstance(n, Load) and n.buffer in shared:
                    yield Touch(n.buffer, n.index, False, at)
        if isinstance(s, Store | Accumulate) and s.buffer in shared:
            yield Touch(s.buffer, s.index, True, at)


def expressions_of(s: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, without those of statements inside it."""
    match s:
        case For(lo=lo, hi=hi):
            return lo, hi
        case If(cond=cond):
            return (cond,)
        case Switch(value=value) | Let(value=value):
            return (value,)
        case Store(index=index, value=value) | Accumulate(index=index, value=value):
            return (*index, value)
        case _:
            return ()


@dataclass(frozen=True)
class Place:
    """A block that an iteration of a parallel loop owns, as a value: equal places are equal blocks.

    `width` rows or columns from p*width + `offset` on, seen through the injective `functions`; for a tile of rows
    the rows from `offset` + p*`length` // tiles on.
    """

    functions: tuple[str, ...]
    width: int
    offset: Expr
    length: Expr | None = None


def place(known: QuickRules, e: Expr, around: Around, loop: For) -> Place | None:
    """The block of `loop` that the index `e` stays in; None where it may leave it."""
    written_out = around.expand(e)
    if loop.var not in free_vars(written_out):
        return None
    match e:
        case Index(fn, (arg,)) if "injective" in known.facts.get(fn, ()):
            found = place(known, arg, around, loop)
            return found and replace(found, functions=(fn, *found.functions))
        case _:
            pass
    tile = row_tile(e, around)
    if tile is not None and tile.loop.var == loop.var:
        return Place((), 0, add(tile.first, tile.offset), tile.length)
    form = affine(written_out, loop.var)
    if form is None or form[0] <= 0:
        return None
    width, rest = form
    inner = around.inside(loop)
    low = high = 0
    for each in inner:
        if each.var not in free_vars(rest):
            continue
        term = affine(rest, each.var)
        if term is None or not isinstance(each.lo, Int) or not isinstance(each.hi, Int):
            return None
        ends = term[0] * each.lo.value, term[0] * (each.hi.value - 1)
        low, high, rest = low + min(ends), high + max(ends), term[1]
    if free_vars(rest) & {each.var for each in inner}:
        return None
    if isinstance(rest, Int):
        low, high, rest = low + rest.value, high + rest.value, Int((low + rest.value) // width * width)
        low, high = low - rest.value, high - rest.value
    return Place((), width, rest) if 0 <= low <= high < width else None


@dataclass(frozen=True)
class RowTile:
    """Rows `first` + `offset` + o*length // tiles + r of tile o, with r less than the rows of the tile."""

    loop: For
    first: Expr
    length: Expr
    offset: Expr


def row_tile(e: Expr, around: Around) -> RowTile | None:
    """Is `e` a row of a balanced tile, as `Tile` forms them? It then lies between first and first + length."""
    for name in free_vars(e):
        match around.lets.get(name):
            case Binary("add", first, Binary("floordiv", Binary("mul", Var(o), length), tiles)):
                loop = next((x for x in around.loops if (x.var, x.lo, x.hi) == (o, Int(0), tiles)), None)
                form = affine(e, name)
                if loop is None or form is None or form[0] != 1:
                    continue
                rest = form[1]
                inner = {x.var: x for x in around.inside(loop)}
                row = next((inner[v] for v in free_vars(rest) if v in inner), None)
                term = affine(rest, row.var) if row is not None else None
                if row is None or term is None or term[0] != 1 or free_vars(term[1]) & set(inner):
                    continue
                if row.lo == Int(0) and _within(row.hi, rows_of(Var(o), length, tiles), around):
                    return RowTile(loop, around.expand(first), around.expand(length), around.expand(term[1]))
            case _:
                pass
    return None


def rows_of(tile: Expr, length: Expr, tiles: Expr) -> Expr:
    """The number of rows of a balanced tile."""
    return sub(floordiv(mul(add(tile, 1), length), tiles), floordiv(mul(tile, length), tiles))


def _within(limit: Expr, rows: Expr, around: Around) -> bool:
    """Is `limit` at most `rows`, the value of a let?"""
    names = [name for name, value in around.lets.items() if value == rows]
    if isinstance(limit, Int):
        return any(limit.value <= around.decided.get(name, 0) for name in names)
    return isinstance(limit, Var) and limit.name in names


@dataclass(frozen=True)
class Use:
    """What matters of an access for other threads. Equal uses are interchangeable.

    `bounds` are those of the parallel loop around it (None: every thread does it); for each dimension, `places` is
    the block it owns and `ranges` the values that its index can take. `group` is the group its node belongs to, and
    `left` is the group that its node is certainly not in.
    """

    buffer: str
    writes: bool
    bounds: tuple[Expr, Expr] | None
    places: tuple[Place | None, ...]
    ranges: tuple[tuple[float, float], ...]
    group: Expr | None
    left: Expr | None


def use_of(known: QuickRules, t: Touch) -> Use:
    """The use that an access is, of the iterations of the parallel loop around it."""
    return use_in(known, t, t.around.parallel)


def use_in(known: QuickRules, t: Touch, loop: For | None) -> Use:
    """The use that an access is, of the iterations of `loop`, which is around it."""
    return shared_out(known, t, use_by_all(known, t), loop)


def use_by_all(known: QuickRules, t: Touch) -> Use:
    """The use that an access is if everybody does it."""
    constant = t.around.constant_bounds()
    expanded = tuple(t.around.expand(e) for e in t.index)
    ranges = tuple(interval_of(e, constant) for e in expanded)
    left = known.group_left(expanded[0], t.around.loops) if t.index else None
    group = _group_of(t) if t.index else None
    return Use(t.buffer, t.writes, None, (), ranges, group, left)


def shared_out(known: QuickRules, t: Touch, by_all: Use, loop: For | None) -> Use:
    """The use of an access by all, of the iterations of `loop`, which is around it."""
    if loop is None:
        return by_all
    bounds = t.around.expand(loop.lo), t.around.expand(loop.hi)
    return replace(by_all, bounds=bounds, places=tuple(place(known, e, t.around, loop) for e in t.index))


def _group_of(t: Touch) -> Expr | None:
    row = t.index[0]
    for loop in t.around.loops:
        match loop.lo:
            case Index("group_start", (group,)) if row == Var(loop.var):
                return group
            case _:
                pass
    match row_tile(row, t.around):
        case RowTile(_, Index("group_start", (group,)), Index("group_len", (same,)), Int(0)) if group == same:
            return group
        case _:
            return None


def clash(x: Use, y: Use, stale: frozenset[str] = frozenset()) -> bool:
    """May two threads meet at an element that one of them writes?

    `stale` are loops of which `x` belongs to an earlier iteration: what depends on their variables is not the same.
    """
    if x.buffer != y.buffer or not (x.writes or y.writes):
        return False
    if any(a[1] < b[0] or b[1] < a[0] for a, b in zip(x.ranges, y.ranges, strict=True)):
        return False
    for a, b in ((x, y), (y, x)):
        if a.group is not None and a.group == b.left and not free_vars(a.group) & stale:
            return False
    if x.bounds is None or x.bounds != y.bounds or free_vars(x.bounds) & stale:
        return True
    if x.bounds == (Int(0), Int(1)):
        return False  # one iteration: one thread, always the same
    return not any(
        a is not None and a == b and not free_vars((a.offset, a.length or Int(0))) & stale
        for a, b in zip(x.places, y.places, strict=True)
    )


def context_of(f: Func, name: str) -> Around:
    """Where the loop `name` stands."""
    return next((at for s, at in statements(f.body, Around()) if isinstance(s, For) and s.var == name), Around())
