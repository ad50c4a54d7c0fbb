"""The variant that is predicted to be fastest, without running any.

By "movement", the default, variants are ranked by predicted time: the register tile's cycles and the way of its data.
By "working sets" they are ranked as PolyScientist was published, which knows caches and no kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from statistics import fmean
from typing import Literal

from cortex.cost.machine import MIB, Machine
from cortex.cost.reuse import Loop, Use, crowded, exact_lines, movement, moving_ns, tile_ns, total_ns
from cortex.cost.working_sets import Hierarchy, placed, published_cost, working_sets
from cortex.ilir.ir import For, Func, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Int, Load, Var
from cortex.ir.simplify import free_vars, simplify, sub, substitute
from cortex.primitives.variants import Shape, Variant, candidates, levels, program_of, rows_of_band, with_shared_loops
from cortex.schedule.around import loops_around
from cortex.schedule.locate import constant_extent, reach, row_stride
from cortex.schedule.registers import Registers

Cost = Literal["movement", "working sets"]
SHARED_NESTS = 400
"""Ways to run a primitive on one thread that are considered with every loop that threads may share."""
MOST_ROWS = 32
"""Rows that a register tile may have at most."""
SPANNING = 1.02
"""Tiles that span rows of an image take so much longer than others of their size: their rows lie apart."""
LAST_CACHE = 32 * MIB
"""Taken for the size of the last cache by the published cost; the default has the measured rates instead."""


@dataclass(frozen=True)
class Choice:
    """A variant and its cost: predicted nanoseconds, or the published cost and what decides between equals."""

    variant: Variant
    cost: tuple[float, ...]


class _Program:
    """A program whose loops variants run, as the costs see it: extents, what is read and written, where rows lie."""

    def __init__(self, f: Func) -> None:
        self.f, self.shape = f, Shape.of(f)
        columns = loops_around(f, "k")[-1]
        self.reductions: dict[str, int] = {}
        self.steps = 1.0
        for loop in (n for n in walk(columns) if isinstance(n, For) and n is not columns):
            self.reductions[loop.var] = reach(loop, self.shape.extents | self.reductions) or 1
            self.steps *= self._mean_trips(loop)
        self.extents = self.shape.extents | self.reductions
        self.uses = _uses(columns)
        self.lines = exact_lines(f)

    def _mean_trips(self, loop: For) -> float:
        """The iterations of a loop of the sums, on average over the rows of an image where they depend on those."""
        if (trips := constant_extent(loop)) is not None:
            return float(trips)
        moves = free_vars((loop.lo, loop.hi)) & set(self.shape.extents)
        if len(moves) != 1:
            return float(self.reductions[loop.var])
        (name,) = moves
        length, rows = sub(loop.hi, loop.lo), range(self.shape.extents[name])
        found = [simplify(substitute(length, {name: Int(row)})) for row in rows]
        return fmean(max(0, e.value) for e in found if isinstance(e, Int))

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Where, in bytes, the rows of the tallest tile begin in each array that they are read from."""
        tallest = min(self.extents[self.shape.rows], MOST_ROWS)
        read = [use for use in self.uses if "k" not in use.variables]
        return tuple(tuple(_place(self.f, use, self.shape.rows, row) for row in range(tallest)) for use in read)


class Ranking:
    """Predicts the variants of one lowered primitive on one machine, on so many threads."""

    def __init__(self, f: Func, machine: Machine, cost: Cost = "movement", threads: int = 1) -> None:
        self.f, self.machine, self.kind, self.threads = f, machine, cost, threads
        self._programs: dict[bool, _Program] = {}

    def program(self, v: Variant) -> _Program:
        """The program that the loops of a variant are those of."""
        if v.spans not in self._programs:
            self._programs[v.spans] = _Program(program_of(self.f, v))
        return self._programs[v.spans]

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """What there is to choose from. Of very many, only those that are best on one thread are shared out."""
        lanes = self.machine.lanes
        alone = tuple(candidates(self.f, Registers(self.machine.registers, lanes, self.machine.broadcasts)))
        if self.threads > 1 and len(alone) > SHARED_NESTS:
            alone = tuple(sorted(alone, key=self.cost)[:SHARED_NESTS])
        return tuple(each for v in alone for each in with_shared_loops(self.program(v).shape, v, lanes, self.threads))

    @cached_property
    def choices(self) -> list[Choice]:
        """All variants, best first; of equals the one with the larger tiles."""
        found = [Choice(v, self.cost(v)) for v in self.variants]
        return sorted(found, key=lambda c: (c.cost, -c.variant.height * c.variant.vectors, repr(c.variant)))

    def cost(self, v: Variant) -> tuple[float, ...]:
        """The cost of a variant."""
        # rounded, so that equals are equal whatever the order of additions
        return (round(self.ns(v), 3),) if self.kind == "movement" else self.published(v)

    def published(self, v: Variant) -> tuple[float, float]:
        """The cost as published."""
        caches = Hierarchy((self.machine.l1, self.machine.l2, LAST_CACHE))
        p = self.program(v)
        sets = working_sets(self.loops(v), self.tile(v), p.extents, p.uses, p.lines)
        return published_cost(placed(sets, caches), caches)

    def ns(self, v: Variant) -> float:
        """Predicted nanoseconds."""
        return total_ns(self.computing_ns(v), self.moving_ns(v))

    def computing_ns(self, v: Variant) -> float:
        """The register tiles' own time, on the thread that has most of them to run."""
        m, p = self.machine, self.program(v)
        e, shape = p.extents, p.shape
        columns, rows = v.panel or e["k"], rows_of_band(shape, v)
        whole, rest = divmod(-(-columns // m.lanes), v.vectors)
        tiles, lower = divmod(rows, v.height)
        # what does not fill a block of columns, or a tile of rows, is a text of its own, which shares its own loops
        total = 0.0
        for vectors, blocks in ((v.vectors, whole), (rest, 1)):
            for height, count in ((v.height, tiles), (lower, 1)):
                if vectors and height:
                    share = self._share(v, vectors == v.vectors, height == v.height)
                    total += blocks * count * self._tile_ns(p, height, vectors) * share
        total *= SPANNING if v.spans else 1.0
        around = prod(n for name, n in shape.extents.items() if name not in ("k", shape.rows))
        return total * around * (e["k"] // columns) * (e[shape.rows] // rows)

    def _tile_ns(self, p: _Program, height: int, vectors: int) -> float:
        """A register tile's own time."""
        rows = max((crowded(places[:height], self.machine.l1) for places in p.places), default=0)
        return tile_ns(self.machine, height, vectors, p.steps, rows)

    def _share(self, v: Variant, fills_columns: bool, fills_rows: bool) -> float:
        """The share of the busiest thread in the tiles that fill a block of columns, and a tile of rows, or do not."""
        p = self.program(v)
        trips = {name: loop.trips for name, loop in levels(p.shape, v, self.machine.lanes).items()}
        shared = [v.shared]
        if not fills_columns:
            trips.pop("blocks", None)
            shared = ["lines", "rows"] if v.shared == "blocks" else shared
        elif "blocks" in trips:
            trips["blocks"] = -(-(v.panel or p.extents["k"]) // self.machine.lanes) // v.vectors
        if not fills_rows:
            trips.pop("rows", None)
        elif "rows" in trips:
            trips["rows"] = rows_of_band(p.shape, v) // v.height
        return min((-(-trips[name] // self.threads) / trips[name] for name in shared if name in trips), default=1.0)

    def moving_ns(self, v: Variant) -> float:
        """The time of bringing data to the tiles."""
        p = self.program(v)
        return moving_ns(movement(self.loops(v), self.tile(v), p.extents, p.uses, p.lines), self.machine)

    def tile(self, v: Variant) -> dict[str, int]:
        """The box of a register tile."""
        p = self.program(v)
        box = dict.fromkeys(p.shape.extents, 1) | p.reductions
        box[p.shape.rows] = min(v.height, p.extents[p.shape.rows])
        box["k"] = min(v.vectors * self.machine.lanes, p.extents["k"])
        return box

    def loops(self, v: Variant) -> tuple[Loop, ...]:
        """The loops around the register tile that one thread runs, outermost first."""
        found = levels(self.program(v).shape, v, self.machine.lanes)
        if v.shared in found:
            loop = found[v.shared]
            found[v.shared] = replace(loop, trips=-(-loop.trips // self.threads))
        return tuple(loop for loop in found.values() if loop.trips > 1)


def _place(f: Func, use: Use, rows: str, row: int) -> int:
    """Where, in bytes, a row of a tile begins in an array, if all other variables are 0."""
    b = f.buffer(use.name)
    at: dict[str, Expr] = {name: Int(row if name == rows else 0) for name in use.variables}
    found = [simplify(substitute(e, at)) for e in use.index]
    return 4 * sum(e.value * (row_stride(b, axis) or 0) for axis, e in enumerate(found) if isinstance(e, Int))


def _uses(columns: For) -> tuple[Use, ...]:
    """The arrays of the sums and of the result; weights as they lie when packed, a column's after another."""
    found: dict[tuple[str, object], Use] = {}
    for n in walk(columns):
        match n:
            case Load("w", index) if "k" in free_vars(index):
                # packed: steps of the reduction are rows of a panel, columns lie side by side in them
                inner = [Var(v) for v in sorted(free_vars(index) - {"k"})]
                found["w", ()] = Use("w", (*inner, Var("k")))
            case Load("sum") | Load("bias"):
                pass
            case Load(buffer, index) | Store(buffer, index) if buffer != "sum":
                found[buffer, index] = Use(buffer, index)
            case _:
                pass
    return tuple(found.values())
