"""The plain schedule: every loop nest by vectors, weights as they were given, no register tiles.

It is what the default schedule is compared with. A product is taken row of weights by row of weights, each a dot
product along memory; everything else is vectorized over its last column. With `fuse`, nests that share their loops run
together, a few vectors of columns at a time, so that what one nest computes is still in the first-level cache, or in a
register, when the next one uses it.

    before:  for n: for j: { t[n, j] = 0; for k: t[n, j] += w[j, k] * x[n, k] }
             for n: for j: h[n, j] = tanh(t[n, j])
    after:   for n: for j_o in 0..4: { 64 dot products by vectors; tanh of 64 elements, 16 at once }
"""

from __future__ import annotations

from itertools import groupby

from cortex.ilir.ir import For, Func, Stmt
from cortex.ir.node import walk
from cortex.ir.scalar import Load
from cortex.ir.step import Step
from cortex.schedule.cluster import Cluster, clusters_of
from cortex.schedule.default import group_temporaries, nest_lists
from cortex.schedule.dense import Dense
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.locate import blocks, constant_extent, find_loop, is_loop, loop_names
from cortex.schedule.nest import Nest, nest_of, stride
from cortex.schedule.registers import Registers
from cortex.schedule.split import Split
from cortex.schedule.tile import Tile
from cortex.schedule.vector_reduce import VectorReduce
from cortex.schedule.vectorize import Vectorize

MOST_VECTORS = 4
"""Vectors of columns that fused nests take at a time. With one, a vector is read before the 16 sums stored in it have
reached the cache, and the processor waits."""


def plain_schedule(f: Func, registers: Registers, fuse: bool) -> tuple[Step[Func], ...]:
    """The steps for a lowered function: vectors, no tiles, no packing; nests run together where `fuse` says so."""
    writer = _Writer(f, registers.lanes)
    for block in nest_lists(f):
        nests = [nest_of(f, s) for s in block if isinstance(s, For)]
        clusters = clusters_of(f, block, registers.most_sums()) if fuse else [[nest] for nest in nests]
        for cluster in clusters:
            writer.cluster(cluster)
    temporaries = group_temporaries(f)
    if temporaries:
        writer.do(Dense(temporaries))
    return tuple(writer.steps)


class _Writer:
    """The steps so far, and the function after them: later steps need the names that earlier ones gave."""

    def __init__(self, f: Func, lanes: int) -> None:
        self.f, self.lanes = f, lanes
        self.steps: list[Step[Func]] = []

    def do(self, step: Step[Func]) -> None:
        """Add a step."""
        self.f = step.apply(self.f)
        self.steps.append(step)

    def cluster(self, cluster: Cluster) -> None:
        """Nests that may run together."""
        columns = cluster[0].columns
        sums = [nest for nest in cluster if nest.kind != "pointwise"]
        if not sums or not all(self._is_dot(nest) for nest in sums):
            self._by_columns(cluster)
        elif len(cluster) == 1:
            self._dot_products(cluster[0].name)
        elif columns and (constant_extent(columns[-1]) or 0) % self.lanes == 0:
            self._in_vectors(cluster)
        else:  # columns that are no whole number of vectors
            for nest in cluster:
                self.cluster([nest])

    def _by_columns(self, cluster: Cluster) -> None:
        """Nests that vectors of columns run through: pointwise ones, and sums over children or rows of a matrix."""
        first = cluster[0]
        if len(cluster) > 1:
            self.do(Fuse(tuple(n.name for n in cluster), 1 + len(first.columns)))
        if not first.columns:
            return
        column = first.columns[-1].var
        if all(nest.kind == "pointwise" for nest in cluster):
            self.do(Vectorize(column, self.lanes))
        else:  # a tile of one vector, which is its sum's accumulator
            top = first.rows if first.guard is None else first.columns[0]
            self.do(Tile(top.var, column, None, 1, 1, self.lanes, (1,)))

    def _in_vectors(self, cluster: Cluster) -> None:
        """Dot products and what is computed from them, a few vectors of columns at a time."""
        columns = cluster[0].columns
        vectors = (constant_extent(columns[-1]) or 0) // self.lanes
        block = next(n for n in range(MOST_VECTORS, 0, -1) if vectors % n == 0) * self.lanes
        self.do(Fuse(tuple(n.name for n in cluster), 1 + len(columns)))
        known = set(loop_names(self.f))
        self.do(Split(columns[-1].var, block, "none"))
        _, inner = (name for name in loop_names(self.f) if name not in known)
        self.do(Distribute(inner))
        together = next(block for block in blocks(self.f.body) if any(is_loop(inner)(s) for s in block))
        parts = [s for s in together if isinstance(s, For)]
        for is_sum, run in groupby(parts, lambda part: any(isinstance(s, For) for s in part.body)):
            names = tuple(part.var for part in run)
            if is_sum:
                for name in names:
                    self._dot_products(name)
                continue
            if len(names) > 1:
                self.do(Fuse(names))
            self.do(Vectorize(names[0], self.lanes))

    def _dot_products(self, nest: str) -> None:
        """Every innermost sum of a nest by vectors along memory."""
        for loop in [s for s in walk(self._loop(nest)) if isinstance(s, For)]:
            innermost = not any(isinstance(s, For) for s in loop.body)
            if innermost and (constant_extent(loop) or 0) >= self.lanes:
                self.do(VectorReduce(loop.var, self.lanes))

    def _loop(self, name: str) -> For:
        return find_loop(self.f, name, "plain_schedule")

    def _is_dot(self, nest: Nest) -> bool:
        """Do all sums of a nest read memory in order, a vector or more of it?"""
        buffers = {b.name: b for b in self.f.buffers}
        for s in nest.body:
            last: Stmt = s
            while isinstance(last, For) and isinstance(last.body[0], For):
                last = last.body[0]
            if not isinstance(last, For):
                continue
            loads = [n for inner in last.body for n in walk(inner) if isinstance(n, Load)]
            in_order = all(stride(buffers[n.buffer], n, last.var) in (0, 1) for n in loads)
            if not in_order or (constant_extent(last) or 0) < self.lanes:
                return False
        return True
