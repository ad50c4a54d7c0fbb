"""Split: run a loop in blocks of a fixed number of iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cortex.ilir.ir import Case, For, Func, If, LoopKind, Stmt, Switch
from cortex.ilir.show import show_expr
from cortex.ir.scalar import Binary, Expr, Int, Var
from cortex.ir.simplify import add, ceildiv, floordiv, mod, mul, substitute
from cortex.ir.step import Step, step
from cortex.poly.extent import extent_of
from cortex.poly.legal import divides
from cortex.schedule.locate import Block, Names, find_loop, refuse, replace_loop
from cortex.schedule.rename import fresh_copy

Tail = Literal["guard", "peel", "cases", "none"]


@step
class Split(Step[Func]):
    """Split a loop into an outer loop and an inner loop of `factor` iterations.

    before:  for i in 0..n: S(i)
    after:   guard   for i_o in 0..ceil(n/factor): for i_i in 0..factor: if i_o*factor + i_i < n: S(...)
             peel    for i_o in 0..n//factor: for i_i in 0..factor: S(i_o*factor + i_i)
                     for i_t in n//factor*factor..n: S(i_t)
             cases   the same main loops, then: switch n mod factor: case r: for i_t in 0..r: S(...)   (r constant)
             none    the main loops alone
    legal:   always, for a loop whose bounds read no memory and that is not vectorized; tail="none" needs factor to
             divide the extent provably. Where it does, every tail is none. Of a
             parallel loop, threads share the blocks.
    """

    loop: str
    factor: int
    tail: Tail = "guard"

    def apply(self, f: Func) -> Func:
        """`f` with the loop split."""
        loop = find_loop(f, self.loop, self)
        if self.factor < 1:
            refuse(self, f"a loop cannot be split by {self.factor}; use a factor of at least 1.", f, self.loop)
        if self.tail not in ("guard", "peel", "cases", "none"):
            refuse(self, "the tail must be 'guard', 'peel', 'cases' or 'none'.", f, self.loop)
        if loop.kind is LoopKind.VECTORIZED:
            refuse(self, f"{self.loop!r} is vectorized; split it before that.", f, self.loop)
        extent = extent_of(f, loop)
        if extent is None:
            refuse(self, f"the bounds of {self.loop!r} read memory; only constants, sizes and index functions can "
                   "be split.", f, self.loop)  # fmt: skip
        exact = divides(f, self.loop, self.factor, extent)
        if self.tail == "none" and not exact:
            refuse(
                self,
                f"the extent of {self.loop!r} is {show_expr(extent)}, which {self.factor} is not known to divide. "
                "Use tail='guard', 'peel' or 'cases'.",
                f,
                self.loop,
            )
        names = Names(f)
        if self.tail == "guard" and not exact:
            return replace_loop(f, self.loop, (self._blocks(names, loop, ceildiv(extent, self.factor), extent),))
        whole = floordiv(extent, self.factor)
        stmts: list[Stmt] = [] if whole == Int(0) else [self._blocks(names, loop, whole, None)]
        if not exact:
            stmts += (
                self._peeled(names, loop, whole) if self.tail == "peel" else self._cases(names, loop, whole, extent)
            )
        return replace_loop(f, self.loop, tuple(stmts))

    def _blocks(self, names: Names, loop: For, count: Expr, limit: Expr | None) -> For:
        """`count` blocks of `factor` iterations, those from `limit` on left out."""
        outer, inner = Var(names.fresh(f"{self.loop}_o")), Var(names.fresh(f"{self.loop}_i"))
        number = add(mul(outer, self.factor), inner)
        body: Block = substitute(loop.body, {self.loop: add(loop.lo, number)})
        if limit is not None:
            body = (If(Binary("lt", number, limit), body),)
        kind = LoopKind.SERIAL if loop.kind is LoopKind.PARALLEL else loop.kind
        block = replace(loop, var=inner.name, lo=Int(0), hi=Int(self.factor), body=body, kind=kind)
        return replace(loop, var=outer.name, lo=Int(0), hi=count, body=(block,))

    def _peeled(self, names: Names, loop: For, whole: Expr) -> list[Stmt]:
        """The remaining iterations as they were."""
        tail = names.fresh(f"{self.loop}_t")
        body = fresh_copy(substitute(loop.body, {self.loop: Var(tail)}), names)
        return [replace(loop, var=tail, lo=add(loop.lo, mul(whole, self.factor)), body=body)]

    def _cases(self, names: Names, loop: For, whole: Expr, extent: Expr) -> list[Stmt]:
        """A loop of constant extent for every number of remaining iterations."""

        def exactly(count: int) -> For:
            tail = Var(names.fresh(f"{self.loop}_t"))
            place = add(loop.lo, add(mul(whole, self.factor), tail))
            body = fresh_copy(substitute(loop.body, {self.loop: place}), names)
            return replace(loop, var=tail.name, lo=Int(0), hi=Int(count), body=body)

        rest = mod(extent, self.factor)
        if isinstance(rest, Int):
            return [exactly(rest.value)]
        return [Switch(rest, tuple(Case(r, (exactly(r),)) for r in range(1, self.factor)))]
