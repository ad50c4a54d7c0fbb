"""The default schedule for a GPU: blocks of output columns to work-groups, their columns and the nodes to items.

It looks at loops, like the default schedule for threads. Of every cluster of nests that share their loops:

    blocks    where the last column loop has a block for each work-group, work-groups own blocks of columns, in every
              group of nodes the same ones; items x share the columns of a block and items y the nodes
    columns   else, where an outer column loop has an iteration for each work-group, that loop is given to them
    nodes     else, work-groups share the nodes; items share what columns there are

Weights are packed by blocks of columns, and sums are in registers of the item that adds them up; a sum that is all
there is of a node is added up by the items of a work-group. Weights that the recursion reads stay in local memory, as
many as there is room for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from cortex.ilir.ir import Buffer, For, Func, Scope
from cortex.ir.node import walk
from cortex.ir.scalar import Int
from cortex.ir.step import Step, attempt
from cortex.schedule.barrier import PlaceBarriers
from cortex.schedule.cluster import Cluster, clusters_of
from cortex.schedule.default import group_temporaries, nest_lists
from cortex.schedule.dense import Dense
from cortex.schedule.fuse import Fuse
from cortex.schedule.item_barriers import PlaceItemBarriers
from cortex.schedule.item_sums import ItemSums
from cortex.schedule.items import AloneItem, Items, may_meet
from cortex.schedule.locate import buffers_of, constant_extent, loop_names
from cortex.schedule.nest import Nest
from cortex.schedule.pack import Pack
from cortex.schedule.parallel import Alone, Parallel
from cortex.schedule.reorder import Reorder
from cortex.schedule.resident import Resident
from cortex.schedule.split import Split
from cortex.schedule.tile import Tile

MOST_SUMS = 8  # of one item, in registers
WIDEST, NARROWEST = 32, 4
"""Columns of a block: as many as run at once, and as few as are still worth a piece of memory."""


@dataclass(frozen=True)
class Grid:
    """What runs a program: so many work-groups, each of (x, y) items, with `local_bytes` of memory for its items."""

    groups: int
    items: tuple[int, int]
    local_bytes: int = 0


def gpu_schedule(f: Func, grid: Grid) -> tuple[Step[Func], ...]:
    """The steps that map a lowered function to work-groups and items."""
    plan = _Plan(f)
    for block in nest_lists(f):
        for cluster in clusters_of(f, block, MOST_SUMS):
            _cluster(plan, cluster, grid)
    _keep_weights(plan, grid)
    temporaries = group_temporaries(plan.f)
    if temporaries:
        plan.take(Dense(temporaries))
    for last in (Alone(), AloneItem(), PlaceBarriers(), PlaceItemBarriers()):
        plan.take(last)
    return tuple(plan.steps)


@dataclass
class _Plan:
    """The function so far, and the steps that led there."""

    f: Func
    steps: list[Step[Func]] = field(default_factory=list)

    def take(self, step: Step[Func]) -> None:
        """Apply a step."""
        self.f = step.apply(self.f)
        self.steps.append(step)

    def attempt(self, step: Step[Func]) -> bool:
        """Apply a step, unless it is refused."""
        new = attempt(self.f, step)
        if new is not None:
            self.f = new
            self.steps.append(step)
        return new is not None

    def made(self, step: Step[Func]) -> list[str] | None:
        """Apply a step and give the loops that are new; None where it is refused."""
        before = set(loop_names(self.f))
        return [n for n in loop_names(self.f) if n not in before] if self.attempt(step) else None


def _cluster(plan: _Plan, cluster: Cluster, grid: Grid) -> None:
    first = cluster[0]
    if len(cluster) > 1:
        plan.take(Fuse(tuple(n.name for n in cluster), 1 + len(first.columns)))
    if not first.columns:
        if plan.attempt(Parallel(first.name)):
            _by_items(plan, cluster, grid.items[0])
        return
    is_sum = any(n.kind != "pointwise" for n in cluster)
    nest = _Nest(first, is_sum, is_sum and _reads_weights(plan.f, cluster))
    width = width_of(nest.extents[-1], grid.groups)
    if width is not None and _by_blocks(plan, nest, width):
        return
    for column, extent in zip(nest.columns[:-1], nest.extents[:-1], strict=True):
        if extent >= grid.groups > 1 and _by_column(plan, nest, column):
            return
    _by_nodes(plan, nest)


def _by_items(plan: _Plan, cluster: Cluster, items: int) -> None:
    """Add up the sums of nests without columns by the items of a work-group."""
    for loop in (s for nest in cluster for s in nest.body if isinstance(s, For)):
        extent = min(constant_extent(loop) or 0, items)
        if extent > 1:
            plan.attempt(ItemSums(loop.var, 1 << (extent.bit_length() - 1)))


def _keep_weights(plan: _Plan, grid: Grid) -> None:
    """Hold weights that the recursion reads in local memory, the largest first, as long as there is room."""
    inside = buffers_of(s for s in plan.f.body if isinstance(s, For) and s.var == "g")
    room = grid.local_bytes - sum(_bytes(b, 1) for b in plan.f.buffers if b.scope is Scope.LOCAL)
    weights = [b for b in plan.f.buffers if b.scope is Scope.PACKED and b.name in inside]
    for b in sorted(weights, key=lambda b: -_bytes(b, grid.groups)):
        if _bytes(b, grid.groups) <= room and plan.attempt(Resident(b.name)):
            room -= _bytes(b, grid.groups)


def _bytes(b: Buffer, groups: int) -> int:
    """The local memory that a work-group needs for its slices of a buffer."""
    slices, *rest = (e.value for e in b.shape if isinstance(e, Int))
    return 4 * -(-slices // groups) * prod(rest)


@dataclass(frozen=True)
class _Nest:
    """The loops of a cluster, once they are shared; whether it sums anything, and whether it reads weights there."""

    first: Nest
    is_sum: bool
    has_weights: bool

    @property
    def rows(self) -> str:
        return self.first.name

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(loop.var for loop in self.first.columns)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(constant_extent(loop) or 1 for loop in self.first.columns)


def width_of(columns: int, groups: int) -> int | None:
    """The columns of a block, so that there are blocks for all work-groups: the most that leave no odd block."""
    enough = [w for w in range(min(columns, WIDEST), NARROWEST - 1, -1) if -(-columns // w) >= groups]
    exact = (w for w in enough if columns % w == 0)
    return next(exact, None) or next((w for w in enough if w & (w - 1) == 0), columns if groups == 1 else None)


def _reads_weights(f: Func, cluster: Cluster) -> bool:
    params = {b.name for b in f.buffers if b.scope is Scope.PARAM}
    return any(getattr(n, "buffer", None) in params for nest in cluster for s in nest.body for n in walk(s))


def _by_blocks(plan: _Plan, nest: _Nest, width: int) -> bool:
    """Give blocks of the last column to work-groups."""
    trial = _Plan(plan.f)
    if nest.has_weights:
        trial.attempt(Pack(nest.columns[-1], width))
    found = _column_outermost(trial, nest, (nest.rows, *nest.columns[:-1]))
    blocks = None if found is None else trial.made(Split(found[0], width))
    if found is None or blocks is None:
        return False
    shared = trial.attempt(Parallel(blocks[0])) and trial.attempt(Items(blocks[1], "x"))
    return shared and _accept(plan, trial, found[1])


def _by_column(plan: _Plan, nest: _Nest, shared: str) -> bool:
    """Give the iterations of an outer column loop to work-groups."""
    trial = _Plan(plan.f)
    found = _column_outermost(
        trial, nest, (nest.rows, *(c for c in nest.columns[:-1] if c != shared)), outside=(shared,)
    )
    if found is None:
        return False
    done = trial.attempt(Parallel(shared)) and trial.attempt(Items(found[0], "x"))
    return done and _accept(plan, trial, found[1])


def _by_nodes(plan: _Plan, nest: _Nest) -> None:
    """Give nodes to work-groups."""
    *outer, column = nest.columns
    if nest.is_sum:
        top = nest.rows if nest.first.guard is None else nest.columns[0]
        new = plan.made(Tile(top, column, None, 1, 1, 1, (1,)))
        column = column if new is None else next(name for name in new if name.startswith(f"{column}_o"))
    if plan.attempt(Parallel(nest.rows)):
        plan.attempt(Items(column, "x"))
        if outer:
            plan.attempt(Items(outer[0], "y"))


def _column_outermost(
    plan: _Plan, nest: _Nest, inside: tuple[str, ...], outside: tuple[str, ...] = ()
) -> tuple[str, str] | None:
    """Run the loops `inside` within the last column, sums in registers; gives the column and the first loop inside."""
    column = nest.columns[-1]
    if nest.is_sum:
        new = plan.made(Tile(nest.rows, column, None, 1, 1, 1, (1,), inside))
        if new is not None:
            return next(n for n in new if n.startswith(f"{column}_o")), next(n for n in new if n.startswith(inside[0]))
    return (column, inside[0]) if plan.attempt(Reorder((*outside, column, *inside))) else None


def _accept(plan: _Plan, trial: _Plan, rows: str) -> bool:
    """Share the nodes among items too, where that is legal, and go on from there."""
    if not may_meet(trial.f, rows):
        trial.attempt(Items(rows, "y"))
    plan.f = trial.f
    plan.steps += trial.steps
    return True
