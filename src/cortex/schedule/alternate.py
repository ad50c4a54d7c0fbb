"""Alternate: go through the blocks of a loop in one direction, and the next time in the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cortex.ilir.ir import For, Func, If, LoopKind, Scope
from cortex.ir.node import walk
from cortex.ir.scalar import Load, Var
from cortex.ir.simplify import free_vars
from cortex.ir.step import Step, step
from cortex.lower.places import GROUP
from cortex.schedule.independent import refuse_dependent
from cortex.schedule.locate import Block, blocks, constant_extent, find_loop, refuse, replace_loop


@step
class Alternate(Step[Func]):
    """Run the iterations of a loop upwards in even iterations of a loop around it, and downwards in odd ones.

    before:  for g: for j_o in 0..16: ... packed[j_o, k, l]
    after:   for g: for j_o in 0..16 down where g is odd: ... packed[j_o, k, l]
    legal:   no iteration touches an element of a shared buffer that another one writes, and nothing is passed on in
             private buffers or registers, as for `Parallel`; `by` is a loop around the loop.

    What was read last is read first the next time, while it is still in the cache. Read in one direction, weights that
    are a little larger than a cache are never found in it. Steps that make other loops of this one (Tile, Flatten,
    Unroll, Vectorize, Items) run those upwards; Split, Peel, Distribute and Parallel keep it turned.
    """

    loop: str
    by: str

    def apply(self, f: Func) -> Func:
        """`f` with the loop turned."""
        loop, around = find_loop(f, self.loop, self), find_loop(f, self.by, self)
        if loop.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
            refuse(self, f"{self.loop!r} is {loop.kind.value}.", f, self.loop)
        if loop is around or not any(n is loop for n in walk(around)):
            refuse(self, f"{self.loop!r} is not inside {self.by!r}.", f, self.loop)
        if loop.kind is LoopKind.SERIAL:
            refuse_dependent(self, f, loop)
        return replace_loop(f, self.loop, (replace(loop, turned=Var(self.by)),))


def groups_of(f: Func) -> For | None:
    """The loop over groups."""
    loops = (s for block in blocks(f.body) for s in block if isinstance(s, For))
    return next((loop for loop in loops if loop.var == GROUP.name), None)


def panel_loops(f: Func) -> list[For]:
    """The outermost loops over panels of weights in a group, or in what a thread has of it."""
    packed = {b.name for b in f.buffers if b.scope is Scope.PACKED}

    def is_over_panels(loop: For) -> bool:
        reads = (n for n in walk(loop) if isinstance(n, Load) and n.buffer in packed)
        return (constant_extent(loop) or 0) > 1 and any(loop.var in free_vars(n.index) for n in reads)

    def find(body: Block) -> Iterator[For]:
        for s in body:
            match s:
                case If(_, then, orelse):
                    yield from (*find(then), *find(orelse))
                case For(kind=LoopKind.SERIAL | LoopKind.PARALLEL) if is_over_panels(s):
                    yield s
                case For(body=inner, kind=LoopKind.PARALLEL):
                    yield from find(inner)
                case _:
                    pass

    groups = groups_of(f)
    return [] if groups is None else list(find(groups.body))
