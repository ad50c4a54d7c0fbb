"""The variant that is predicted to be fastest, without running any.

By "movement", the default, variants are ranked by predicted time: the register tile's cycles and the way of its data.
By "working sets" they are ranked as PolyScientist was published, which knows caches and no kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

from cortex.cost.machine import MIB, Machine
from cortex.cost.reuse import Loop, Use, exact_lines, movement, moving_ns, tile_ns, total_ns
from cortex.cost.working_sets import Hierarchy, placed, published_cost, working_sets
from cortex.ilir.ir import For, Func, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Load, Var
from cortex.ir.simplify import affine, free_vars, simplify
from cortex.primitives.variants import Shape, Variant, candidates, levels, rows_of_band, with_shared_loops
from cortex.schedule.around import loops_around
from cortex.schedule.locate import reach, row_stride
from cortex.schedule.registers import Registers

Cost = Literal["movement", "working sets"]
SHARED_NESTS = 400
"""Ways to run a primitive on one thread that are considered with every loop that threads may share."""
LAST_CACHE = 32 * MIB
"""Taken for the size of the last cache by the published cost; the default has the measured rates instead."""


@dataclass(frozen=True)
class Choice:
    """A variant and its cost: predicted nanoseconds, or the published cost and what decides between equals."""

    variant: Variant
    cost: tuple[float, ...]


class Ranking:
    """Predicts the variants of one lowered primitive on one machine, on so many threads."""

    def __init__(self, f: Func, machine: Machine, cost: Cost = "movement", threads: int = 1) -> None:
        self.f, self.machine, self.kind, self.threads = f, machine, cost, threads
        self.shape = Shape.of(f)
        self.lines = exact_lines(f)
        columns = loops_around(f, "k")[-1]
        self.reductions: dict[str, int] = {}
        for loop in (n for n in walk(columns) if isinstance(n, For) and n is not columns):
            self.reductions[loop.var] = reach(loop, self.shape.extents | self.reductions) or 1
        self.extents = self.shape.extents | self.reductions
        self.uses = _uses(columns)
        self.row_bytes = max(
            (_row_bytes(f, use, self.shape.rows) for use in self.uses if "k" not in use.variables), default=0
        )

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """What there is to choose from. Of very many, only those that are best on one thread are shared out."""
        lanes = self.machine.lanes
        alone = tuple(candidates(self.f, Registers(self.machine.registers, lanes, self.machine.broadcasts)))
        if self.threads > 1 and len(alone) > SHARED_NESTS:
            alone = tuple(sorted(alone, key=self.cost)[:SHARED_NESTS])
        return tuple(each for v in alone for each in with_shared_loops(self.shape, v, lanes, self.threads))

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
        sets = working_sets(self.loops(v), self.tile(v), self.extents, self.uses, self.lines)
        return published_cost(placed(sets, caches), caches)

    def ns(self, v: Variant) -> float:
        """Predicted nanoseconds."""
        return total_ns(self.computing_ns(v), self.moving_ns(v))

    def computing_ns(self, v: Variant) -> float:
        """The register tiles' own time, on the thread that has most of them to run."""
        m, e, shape = self.machine, self.extents, self.shape
        steps = prod(self.reductions.values())
        columns, rows = v.panel or e["k"], rows_of_band(shape, v)
        whole, rest = divmod(-(-columns // m.lanes), v.vectors)
        tiles, lower = divmod(rows, v.height)
        # what does not fill a block of columns, or a tile of rows, is a text of its own, which shares its own loops
        total = 0.0
        for vectors, blocks in ((v.vectors, whole), (rest, 1)):
            for height, count in ((v.height, tiles), (lower, 1)):
                if vectors and height:
                    share = self._share(v, vectors == v.vectors, height == v.height)
                    total += blocks * count * tile_ns(m, height, vectors, steps, self.row_bytes) * share
        around = prod(n for name, n in shape.extents.items() if name not in ("k", shape.rows))
        return total * around * (e["k"] // columns) * (e[shape.rows] // rows)

    def _share(self, v: Variant, fills_columns: bool, fills_rows: bool) -> float:
        """The share of the busiest thread in the tiles that fill a block of columns, and a tile of rows, or do not."""
        trips = {name: loop.trips for name, loop in levels(self.shape, v, self.machine.lanes).items()}
        shared = [v.shared]
        if not fills_columns:
            trips.pop("blocks", None)
            shared = ["lines", "rows"] if v.shared == "blocks" else shared
        elif "blocks" in trips:
            trips["blocks"] = -(-(v.panel or self.extents["k"]) // self.machine.lanes) // v.vectors
        if not fills_rows:
            trips.pop("rows", None)
        elif "rows" in trips:
            trips["rows"] = rows_of_band(self.shape, v) // v.height
        return min((-(-trips[name] // self.threads) / trips[name] for name in shared if name in trips), default=1.0)

    def moving_ns(self, v: Variant) -> float:
        """The time of bringing data to the tiles."""
        return moving_ns(movement(self.loops(v), self.tile(v), self.extents, self.uses, self.lines), self.machine)

    def tile(self, v: Variant) -> dict[str, int]:
        """The box of a register tile."""
        box = dict.fromkeys(self.shape.extents, 1) | self.reductions
        box[self.shape.rows] = min(v.height, self.extents[self.shape.rows])
        box["k"] = min(v.vectors * self.machine.lanes, self.extents["k"])
        return box

    def loops(self, v: Variant) -> tuple[Loop, ...]:
        """The loops around the register tile that one thread runs, outermost first."""
        found = levels(self.shape, v, self.machine.lanes)
        if v.shared in found:
            loop = found[v.shared]
            found[v.shared] = replace(loop, trips=-(-loop.trips // self.threads))
        return tuple(loop for loop in found.values() if loop.trips > 1)


def _row_bytes(f: Func, use: Use, rows: str) -> int:
    """How far apart neighbouring rows of an array lie."""
    b = f.buffer(use.name)
    strides = [row_stride(b, axis) or 0 for axis in range(len(b.shape))]
    found = (affine(simplify(e), rows) for e in use.index)
    return 4 * sum(form[0] * stride for form, stride in zip(found, strides, strict=True) if form is not None)


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
