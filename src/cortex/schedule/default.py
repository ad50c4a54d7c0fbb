"""The default schedule: fuse what can be fused, pack the weights, form register tiles, vectorize the rest.

It is a sequence of steps like any other and knows nothing of particular models: it looks at loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal

from cortex.ilir.ir import Accumulate, For, Func, If, Scope
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Load, Var
from cortex.ir.simplify import free_vars, substitute
from cortex.ir.step import Step, apply
from cortex.poly.quick import QuickRules
from cortex.schedule.cluster import Cluster, clusters_of
from cortex.schedule.dense import Dense
from cortex.schedule.fuse import Fuse
from cortex.schedule.locate import Block, buffers_of, constant_extent
from cortex.schedule.narrow_inputs import NarrowInputs, inputs_of
from cortex.schedule.needed_whole import needed_whole
from cortex.schedule.nest import Nest, nest_of, sum_reads
from cortex.schedule.pack import Pack, sums_in
from cortex.schedule.parallel_default import Sharing
from cortex.schedule.registers import AS_REGISTERS_ALLOW, Registers, SumsNest, TileChoice
from cortex.schedule.tile import Tile
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize


@dataclass(frozen=True)
class Choices:
    """What a schedule of this kind leaves open.

    `fuse`: run nests that share their loops together. `tile` is for every nest of sums, but for those that `nests`
    names by the loop of their rows; None leaves the tiles to whoever asks for the schedule. `parallel`: what threads
    share out, where there are several; by default columns.
    """

    fuse: bool = True
    tile: TileChoice | None = AS_REGISTERS_ALLOW
    nests: tuple[tuple[str, TileChoice], ...] = ()
    parallel: Sharing | None = None

    def tile_of(self, nest: str) -> TileChoice | None:
        """The choice for the nest whose row loop is `nest`."""
        return dict(self.nests).get(nest, self.tile)


@dataclass(frozen=True)
class NarrowWeights:
    """Weights will be narrow, and the numbers they are multiplied with `inputs`; None leaves these in f32."""

    inputs: Literal["bf16", "i16"] | None = None


DEFAULT = Choices()
TileFor = Callable[[SumsNest], TileChoice]


def default_schedule(
    f: Func,
    registers: Registers,
    choices: Choices = DEFAULT,
    tile_for: TileFor = lambda _: AS_REGISTERS_ALLOW,
    narrow: NarrowWeights | None = None,
    for_team: bool = False,
) -> tuple[Step[Func], ...]:
    """The steps that make a lowered function fast; `tile_for` gives the tiles that `choices` leaves open.

    `for_team`: temporaries that every thread needs whole are computed in nests of their own, so that every thread may
    compute them for itself.

    Tiles for `narrow` weights leave registers for weights as they are stored, next to the f32 they are widened to, and
    take two steps of their sums at least, as two weights may lie side by side. Weights that are multiplied with narrow
    numbers are not widened.
    """
    steps: list[Step[Func]] = []
    for block in nest_lists(f):
        whole = needed_whole(f, block) if for_team else frozenset[str]()
        for cluster in clusters_of(f, block, registers.most_sums(), whole) if choices.fuse else _apart(f, block):
            steps += _cluster_steps(f, cluster, registers, lambda n: choices.tile_of(n.name) or tile_for(n), narrow)
    temporaries = group_temporaries(apply(f, steps) if narrow is not None and narrow.inputs else f)
    return (*steps, Dense(temporaries)) if temporaries else tuple(steps)


def _apart(f: Func, block: Block) -> list[Cluster]:
    """Every nest for itself."""
    return [[nest_of(f, s)] for s in block if isinstance(s, For)]


def nest_lists(f: Func) -> list[Block]:
    """The statement lists that hold nests: before the recursion, after it, and one per kind inside it."""
    groups = next((i for i, s in enumerate(f.body) if _is_group_loop(s)), len(f.body))
    lists = [f.body[:groups], f.body[groups + 1 :]]
    for s in f.body:
        if isinstance(s, For) and _is_group_loop(s):
            lists += [arm.then for arm in s.body if isinstance(arm, If)]
    return lists


def _is_group_loop(s: object) -> bool:
    return isinstance(s, For) and s.var == "g"


def group_temporaries(f: Func) -> tuple[str, ...]:
    """Scratch buffers used only inside the loop over groups."""
    outside = buffers_of(s for s in f.body if not _is_group_loop(s))
    inside = buffers_of(s for s in f.body if _is_group_loop(s))
    return tuple(b.name for b in f.buffers if b.scope is Scope.SCRATCH and b.name in inside - outside)


def _cluster_steps(
    f: Func, cluster: Cluster, registers: Registers, tile_for: TileFor, narrow: NarrowWeights | None
) -> list[Step[Func]]:
    first = cluster[0]
    steps: list[Step[Func]] = []
    if len(cluster) > 1:
        steps.append(Fuse(tuple(n.name for n in cluster), 1 + len(first.columns)))
    kinds = {n.kind for n in cluster} - {"pointwise"}
    if kinds == {"dot"}:
        return steps + _dot_steps(cluster, registers)
    if not first.columns:
        return steps
    column = first.columns[-1].var
    if not kinds:
        return [*steps, Vectorize(column, registers.lanes)]
    return steps + _tile_steps(f, cluster, registers, tile_for, narrow)


def _dot_steps(cluster: Cluster, registers: Registers) -> list[Step[Func]]:
    steps: list[Step[Func]] = []
    for nest in cluster:
        for s in nest.body:
            last = s
            while isinstance(last, For) and isinstance(last.body[0], For):
                last = last.body[0]
            if isinstance(last, For) and (constant_extent(last) or 0) >= registers.lanes:
                steps.append(VectorReduce(last.var, registers.lanes))
    return steps


def _tile_steps(
    f: Func, cluster: Cluster, registers: Registers, tile_for: TileFor, narrow: NarrowWeights | None
) -> list[Step[Func]]:
    first = cluster[0]
    column = first.columns[-1]
    read = [(nest, load) for nest in cluster for load in _vector_reads(nest)]
    params = {b.name for b in f.buffers if b.scope is Scope.PARAM}
    weights = {load for nest, load in read if load.buffer in params and _is_packable(nest, load)}
    rows = _tile_rows(cluster, read)
    nest = _sums_nest(cluster, len(weights), rows)
    choice, sums = tile_for(nest), nest.sums
    height, vectors = registers.tile(sums, nest.weights, nest.columns, choice)
    rounding = _rounding(f, cluster, registers, narrow.inputs) if narrow is not None and narrow.inputs else []
    if narrow is not None and not rounding:
        widened = (3 if narrow.inputs == "i16" else 2) * nest.weights * vectors  # integers have scales, too
        height = max(1, min(height, (registers.count - registers.broadcasts - widened) // (sums * vectors)))
    if rows is None and (alone := _rows_side_by_side(cluster)) is not None:
        rows, height = alone, min(-(-registers.chains // (sums * vectors)), height)
    if rows is None or height == 1:
        rows, height = None, 1
    unroll = tuple(choice.unroll or registers.unroll(r * sums * vectors) for r in range(1, height + 1))
    if narrow is not None:
        unroll = tuple(max(2, each) for each in unroll)
    top = first.rows if first.guard is None else first.columns[0]
    rows_first = choice.rows_first and rows is not None
    tile = Tile(top.var, column.var, rows, height, vectors, registers.lanes, unroll, rows_first=rows_first)
    return [*rounding, Pack(column.var, vectors * registers.lanes), tile] if weights else [tile]


def _rounding(f: Func, cluster: Cluster, registers: Registers, dtype: Literal["bf16", "i16"]) -> list[Step[Func]]:
    """Steps that round what the sums of a cluster multiply weights with, each number once.

    None for integers where products of different scales are added up in one sum.
    """
    first = cluster[0]
    sums = [n.buffer for nest in cluster for s in nest.body for n in walk(s) if isinstance(n, Accumulate)]
    if dtype == "i16" and len(set(sums)) < len(sums):
        return []
    known = QuickRules.of(f)
    steps: list[Step[Func]] = []
    done: set[Expr] = set()
    for nest in cluster:
        for loop in (s for s in nest.body if isinstance(s, For)):
            found = inputs_of(f, nest.rows, loop)
            if isinstance(found, str):
                continue
            ahead = found.rounding("", dtype)
            if not all(known.commute(s, other.rows) for s in ahead for other in cluster):
                continue
            shared = zip((nest.rows, *nest.columns), (first.rows, *first.columns), strict=True)
            names: dict[str, Expr] = {mine.var: Var(other.var) for mine, other in shared}
            value = substitute(found.value, names | {loop.var: Var("k")})
            if value not in done:
                done.add(value)
                into = f"{loop.var}_in"
                steps += [NarrowInputs(first.name, loop.var, into, dtype), Vectorize(f"{into}_k", registers.lanes)]
                if dtype == "i16" and found.extents[-1] >= registers.lanes:
                    steps.append(VectorReduce(f"{into}_s", registers.lanes))
    return steps


def _sums_nest(cluster: Cluster, weights: int, rows: str | None) -> SumsNest:
    first = cluster[0]
    sums = len(frozenset[str]().union(*(n.targets for n in cluster)))
    column = first.columns[-1]
    loops = [[loop for loop in walk(s) if isinstance(loop, For)] for n in cluster for s in n.body if isinstance(s, For)]
    steps = max((prod(constant_extent(loop) or 1 for loop in each) for each in loops), default=1)
    # Each nest has its own names for the shared loops, so reads are told apart by what they read from.
    single = {x.buffer for n in cluster for x in sum_reads(n) if n.columns[-1].var not in free_vars(x.index)}
    fixed = 1 if rows is None else next((constant_extent(c) for c in first.columns[:-1] if c.var == rows), None)
    return SumsNest(
        first.name, sums, max(1, min(weights, sums)), len(single), constant_extent(column) or 1, steps, fixed
    )


def _vector_reads(nest: Nest) -> list[Load]:
    """What the sums of a nest read a different element of for each column."""
    column = nest.columns[-1].var
    return [load for load in sum_reads(nest) if column in free_vars(load.index)]


def _is_packable(nest: Nest, load: Load) -> bool:
    """Does a weight depend on nothing but columns and summed axes, and so not on the node?

    Where the innermost sum is over children, a panel would have as many rows as there are children.
    """
    loops = [loop for s in (nest.rows, *nest.body) for loop in walk(s) if isinstance(loop, For)]
    known = {loop.var for loop in loops if constant_extent(loop) is not None}
    around = [reductions for reductions, total in sums_in(nest.columns[-1].body, ()) if load in walk(total.value)]
    return free_vars(load.index) <= known and all(reductions[-1].var in known for reductions in around)


def _tile_rows(cluster: Cluster, read: list[tuple[Nest, Load]]) -> str | None:
    """The loop whose iterations become the rows of a tile: one that nothing read by vectors depends on.

    Then a vector that was read serves all rows. Sums over a variable number of children have none, and nodes that are
    asked for their kind are no rows.
    """
    first = cluster[0]
    if any(n.kind == "children" for n in cluster):
        return None
    for place, loop in enumerate((first.rows, *first.columns[:-1])):
        if place == 0 and first.guard is not None:
            continue
        if not any((nest.rows, *nest.columns)[place].var in free_vars(load.index) for nest, load in read):
            return loop.var
    return None


def _rows_side_by_side(cluster: Cluster) -> str | None:
    """Rows that share no vector, but whose sums need not wait for one another."""
    first = cluster[0]
    return None if first.guard is not None or any(n.kind == "children" for n in cluster) else first.rows.var
