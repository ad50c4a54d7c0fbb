"""Parallel: share the iterations of a loop among the threads of the team. Alone: give the rest to one of them."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, For, Func, If, LoopKind, Scope, Stmt, Store
from cortex.ilir.statements import with_lists
from cortex.ir.node import walk
from cortex.ir.scalar import Int, Var
from cortex.ir.simplify import add, mul, substitute
from cortex.ir.step import Step, step
from cortex.schedule.independent import refuse_dependent
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, refuse, replace_loop
from cortex.schedule.ownership import SHARED, context_of


@step
class Parallel(Step[Func]):
    """Run the iterations of a loop on the threads of the team, `grain` neighbouring ones always on the same thread.

    before:  for j_o in 0..16: for n: h[n, j_o*16 + l] = ...
    after:   for j_o_p in 0..8 parallel: for j_o_i in 0..2: for n: h[n, (j_o_p*2 + j_o_i)*16 + l] = ...     (grain 2)
    legal:   no iteration touches an element of a shared buffer that another one writes; private buffers and registers,
             of which every thread has its own, pass no value from one iteration to another, into the loop or out of
             it; nothing in it is computed by every thread for itself (`Replicate`); parallel loops are not nested, and
             `grain` divides the number of iterations.

    What is parallel is up to the loop: a loop over blocks of output columns, over rows, over tiles of rows. A thread
    has the same blocks of columns in every group, so its share of the weights stays in its cache. Loops that are to
    share columns without a barrier need the same number of iterations, hence `grain`.
    """

    loop: str
    grain: int = 1

    def apply(self, f: Func) -> Func:
        """`f` with the loop parallel."""
        loop = find_loop(f, self.loop, self)
        if loop.kind is not LoopKind.SERIAL:
            refuse(self, f"{self.loop!r} is {loop.kind.value}, not serial.", f, self.loop)
        around = context_of(f, self.loop)
        if around.parallel is not None:
            refuse(self, f"{self.loop!r} is inside the parallel loop {around.parallel.var!r}.", f, self.loop)
        inner = [n.var for n in walk(loop) if isinstance(n, For) and is_parallel(n)]
        if inner:
            refuse(self, f"{self.loop!r} contains the parallel loop {inner[0]!r}.", f, self.loop)
        copied = {b.name for b in f.buffers if b.scope is Scope.COPIED}
        if mine := next(
            (n.buffer for n in walk(loop) if isinstance(n, Store | Accumulate) and n.buffer in copied), None
        ):
            refuse(self, f"every thread computes {mine!r} for itself, whole.", f, self.loop)
        new = self._split(f, loop)
        refuse_dependent(self, f, loop, new)
        return replace_loop(f, self.loop, (new,))

    def _split(self, f: Func, loop: For) -> For:
        if self.grain == 1:
            return replace(loop, kind=LoopKind.PARALLEL)
        extent = constant_extent(loop)
        if extent is None or self.grain < 1 or extent % self.grain:
            refuse(self, f"{self.grain} does not divide the number of iterations of {self.loop!r}.", f, self.loop)
        names = Names(f)
        block, within = Var(names.fresh(f"{self.loop}_p")), Var(names.fresh(f"{self.loop}_i"))
        body = substitute(loop.body, {self.loop: add(mul(block, self.grain), within)})
        inner = For(within.name, Int(0), Int(self.grain), body, turned=loop.turned)
        return For(block.name, Int(0), Int(extent // self.grain), (inner,), LoopKind.PARALLEL, loop.turned)


def is_parallel(n: object) -> bool:
    """Is `n` a parallel loop?"""
    return isinstance(n, For) and n.kind is LoopKind.PARALLEL


@step
class Alone(Step[Func]):
    """Let one thread run what writes shared buffers and stands in no parallel loop.

    before:  for p in 0..8 parallel: ...
             h[0, 256] = ...
    after:   for p in 0..8 parallel: ...
             for alone in 0..1 parallel: h[0, 256] = ...
    legal:   no loop computes both what threads share and what each computes for itself (`Replicate`).
    """

    def apply(self, f: Func) -> Func:
        """`f` with all shared writes in parallel loops."""
        shared = {b.name for b in f.buffers if b.scope in SHARED}
        copied = {b.name for b in f.buffers if b.scope is Scope.COPIED}
        names = Names(f)

        def block(body: Block) -> Block:
            new: list[Stmt] = []
            run: list[Stmt] = []  # neighbours that go to one thread

            def close() -> None:
                if run:
                    new.append(For(names.fresh("alone"), Int(0), Int(1), tuple(run), LoopKind.PARALLEL))
                    run.clear()

            for s in body:
                if is_parallel(s) or not writes(s, shared):
                    close()
                    new.append(s)
                elif writes(s, copied) or any(is_parallel(n) for n in walk(s)):
                    if isinstance(s, For) and not any(isinstance(inner, For | If) for inner in s.body):
                        refuse(self, f"{s.var!r} computes for all threads, and for each, at once.", f, s.var)
                    close()
                    new.append(with_lists(s, block))
                else:
                    run.append(s)
            close()
            return tuple(new)

        def writes(s: Stmt, buffers: set[str]) -> bool:
            return any(isinstance(n, Store | Accumulate) and n.buffer in buffers for n in walk(s))

        return replace(f, body=block(f.body))
