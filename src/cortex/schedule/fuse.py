"""Fuse: run several loop nests as one."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import For, Func, Stmt
from cortex.ir.scalar import Var
from cortex.ir.simplify import substitute
from cortex.ir.step import Step, step
from cortex.schedule.dependence import Dependences
from cortex.schedule.locate import Block, edit_block, find_loop, is_loop, refuse


@step
class Fuse(Step[Func]):
    """Fuse sibling loops, `depth` levels deep, into the first of them.

    before:  for i in 0..n: for j in 0..m: A(i, j)
             for x in 0..n: for y in 0..m: B(x, y)
    after:   for i in 0..n: for j in 0..m: { A(i, j); B(i, j) }
    legal:   the loops stand in one statement list and have the same bounds at every level; whatever one nest
             writes and another touches, they touch in the same iteration; statements between them can move out
             of the way.
    """

    loops: tuple[str, ...]
    depth: int = 1

    def apply(self, f: Func) -> Func:
        """`f` with the loops fused."""
        for name in self.loops:
            find_loop(f, name, self)
        return replace(f, body=edit_block(f.body, is_loop(self.loops[0]), lambda block: self._fuse(f, block)))

    def _fuse(self, f: Func, block: Block) -> Block:
        known = Dependences.of(f)
        before: list[Stmt] = []
        nests: list[For] = []
        after: list[Stmt] = []
        for s in block:
            if isinstance(s, For) and s.var in self.loops:
                if any(not known.commute(s, other) for other in after):
                    refuse(self, f"loop {s.var!r} uses what stands between the loops.", f, s.var)
                nests.append(s)
            elif nests and (len(nests) == len(self.loops) or not all(known.commute(o, s) for o in (*nests, *after))):
                after.append(s)
            else:
                before.append(s)
        if len(nests) != len(self.loops):
            missing = next(name for name in self.loops if name not in {s.var for s in nests})
            refuse(self, f"loop {missing!r} does not stand beside {self.loops[0]!r}.", f, missing)
        # The loops keep the names of the first that was named, wherever it stands.
        first = next(number for number, s in enumerate(nests) if s.var == self.loops[0])
        return (*before, self._merge(f, known, tuple(nests), first, ()), *after)

    def _merge(self, f: Func, known: Dependences, nests: tuple[For, ...], number: int, around: tuple[For, ...]) -> For:
        first = nests[number]
        around = (*around, first)
        bodies: list[Block] = []
        for other in nests:
            if (other.lo, other.hi, other.kind) != (first.lo, first.hi, first.kind):
                refuse(self, f"loops {first.var!r} and {other.var!r} have different bounds.", f, other.var)
            body = other.body if other is first else substitute(other.body, {other.var: Var(first.var)})
            if not all(known.all_aligned(earlier, body, around) for earlier in bodies):
                refuse(self, f"an iteration of {other.var!r} uses other iterations of {first.var!r}.", f, other.var)
            bodies.append(body)
        if len(around) == self.depth:
            return replace(first, body=tuple(s for body in bodies for s in body))
        inner = tuple(body[0] for body in bodies if len(body) == 1 and isinstance(body[0], For))
        if len(inner) != len(bodies):
            refuse(self, f"loop {first.var!r} does not hold one loop {self.depth} levels deep.", f, first.var)
        return replace(first, body=(self._merge(f, known, inner, number, around),))
