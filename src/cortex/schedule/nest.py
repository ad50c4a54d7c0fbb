"""What the default schedule needs to know of a loop nest: its space, its sums, how it can be vectorized."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from cortex.ilir.ir import Accumulate, Buffer, For, Func, If, Scope, Stmt, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Load, Var
from cortex.ir.simplify import affine, free_vars, substitute
from cortex.schedule.locate import constant_extent, row_stride

Class = Literal["pointwise", "children", "product", "dot"]


@dataclass(frozen=True)
class Nest:
    """A row loop, column loops, and a body that computes one element (or part of a concatenation).

    `kind` says how it is vectorized: pointwise and product over the last column, children (a sum over a variable
    number of children) too, dot over the summed axis. `guard` is what every row is asked, as a condition on `row`;
    with one, rows are taken one at a time.
    """

    rows: For
    columns: tuple[For, ...]
    body: tuple[Stmt, ...]
    kind: Class
    guard: Expr | None = None

    @cached_property
    def space(self) -> tuple[Expr | int | None, ...]:
        """Nests of one space can share loops."""
        extents = tuple(constant_extent(c) for c in self.columns)
        return (self.rows.lo, self.rows.hi, *extents, self.guard)

    @property
    def name(self) -> str:
        """The name of its row loop."""
        return self.rows.var

    @cached_property
    def targets(self) -> frozenset[str]:
        """The buffers it sums into."""
        return frozenset(n.buffer for s in self.body for n in walk(s) if isinstance(n, Accumulate))


def nest_of(f: Func, rows: For) -> Nest:
    """Read a lowered nest."""
    written = next(n for n in walk(rows) if isinstance(n, Store | Accumulate))
    used = free_vars(written.index)
    columns: list[For] = []
    body = rows.body
    guard: Expr | None = None
    if isinstance(body[0], If):
        guard, body = substitute(body[0].cond, {rows.var: Var("row")}), body[0].then
    while len(body) == 1 and isinstance(body[0], For) and body[0].var in used:
        columns.append(body[0])
        body = body[0].body
    return Nest(rows, tuple(columns), body, _class_of(f, tuple(columns), body), guard)


def _class_of(f: Func, columns: tuple[For, ...], body: tuple[Stmt, ...]) -> Class:
    sums = [s for s in body if isinstance(s, For)]
    if not sums:
        return "pointwise"
    if any(constant_extent(n) is None for s in sums for n in walk(s) if isinstance(n, For)):
        return "children"
    last = sums[-1]
    while isinstance(last.body[0], For):
        last = last.body[0]
    buffers = {b.name: b for b in f.buffers}
    loads = [n for s in last.body for n in walk(s) if isinstance(n, Load)]
    if columns:
        column = columns[-1].var
        by_column = [
            stride(buffers[n.buffer], n, column) in (0, 1)
            or (buffers[n.buffer].scope is Scope.PARAM and column in free_vars(n.index))
            for n in loads
        ]
        if all(by_column):
            return "product"
    return "dot" if not columns or all(stride(buffers[n.buffer], n, last.var) in (0, 1) for n in loads) else "product"


def sum_reads(nest: Nest) -> list[Load]:
    """What the sums of a nest read."""
    sums = [n.value for s in nest.body if isinstance(s, For) for n in walk(s) if isinstance(n, Accumulate)]
    return [n for value in sums for n in walk(value) if isinstance(n, Load)]


def stride(b: Buffer, load: Load, var: str) -> int | None:
    """How far apart in memory, in elements, neighbouring iterations of `var` read; None when that varies."""
    total = 0
    for axis, index in enumerate(load.index):
        if var not in free_vars(index):
            continue
        form, step = affine(index, var), row_stride(b, axis)
        if form is None or step is None:
            return None
        total += form[0] * step
    return total
