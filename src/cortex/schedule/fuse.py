"""Fuse: run several loop nests as one."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Barrier, For, Func, If, Let, Stmt
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Load, Var
from cortex.ir.simplify import free_vars, substitute
from cortex.ir.step import Step, step
from cortex.poly.legal import same_bounds, why_not_fuse, why_not_swap
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block, edit_block, find_loop, is_loop, refuse


@step
class Fuse(Step[Func]):
    """Fuse sibling loops, `depth` levels deep; the result has the names of the first one given.

    before:  for i in 0..n: for j in 0..m: A(i, j)
             for x in 0..n: for y in 0..m: B(x, y)
    after:   for i in 0..n: for j in 0..m: { A(i, j); B(i, j) }
    legal:   the loops stand in one statement list and have the same bounds at every level; what a nest needs of
             another before it, it needs in the same iteration or in a later one (in the same one, if the loops are
             parallel, vectorized or turned by one loop); statements between them can move out of the way.
    """

    loops: tuple[str, ...]
    depth: int = 1

    def apply(self, f: Func) -> Func:
        """`f` with the loops fused."""
        for name in self.loops:
            find_loop(f, name, self)
        if not self.loops or len(set(self.loops)) != len(self.loops) or self.depth < 1:
            refuse(self, "name the loops, each once, and a depth of at least 1.", f, "")
        return replace(f, body=edit_block(f.body, is_loop(self.loops[0]), lambda block: self._fuse(f, block)))

    def _fuse(self, f: Func, block: Block) -> Block:
        quick = QuickRules.of(f)  # where statements between the nests go is a choice only, and it can be simple
        before: list[Stmt] = []
        nests: list[For] = []
        after: list[Stmt] = []
        bound: set[str] = set()  # by what stands after
        for s in block:
            early = free_vars(s) & bound if bound else bound
            if isinstance(s, For) and s.var in self.loops:
                if early:
                    refuse(self, f"{s.var!r} uses {min(early)!r}, which is bound between the loops.", f, s.var)
                if _waits(tuple(after), s):
                    refuse(self, f"{s.var!r} cannot move before a barrier.", f, s.var)
                if after and (conflict := why_not_swap(f, s.var, tuple(after), (s,))):
                    refuse(self, f"{s.var!r} uses what stands between the loops.", f, s.var, conflict)
                nests.append(s)
            elif len(nests) < len(self.loops) and not early and all(quick.commute(o, s) for o in (*nests, *after)):
                before.append(s)
            else:
                after.append(s)
                if isinstance(s, Let):
                    bound.add(s.var.name)
        if len(nests) != len(self.loops):
            missing = next(name for name in self.loops if name not in {s.var for s in nests})
            refuse(self, f"loop {missing!r} does not stand beside {self.loops[0]!r}.", f, missing)
        leader = next(number for number, s in enumerate(nests) if s.var == self.loops[0])
        return (*before, self._merge(f, quick, tuple(nests), leader, ()), *after)

    def _merge(self, f: Func, quick: QuickRules, nests: tuple[For, ...], leader: int, around: tuple[For, ...]) -> For:
        """One loop that runs the bodies of all `nests`, in order, under the name of the `leader`."""
        shared = nests[leader]
        around = (*around, shared)
        bodies: list[Block] = []
        for nest in nests:
            if nest.kind is not shared.kind or not same_bounds(f, self.loops[0], nest, shared):
                refuse(self, f"loops {shared.var!r} and {nest.var!r} have different bounds.", f, nest.var)
            if nest.turned != shared.turned:
                refuse(self, f"loops {shared.var!r} and {nest.var!r} are not turned by the same loop.", f, nest.var)
            body = substitute(nest.body, {nest.var: Var(shared.var)})
            if conflict := why_not_fuse(f, quick, around, bodies, body):
                refuse(self, f"{nest.var!r} needs later iterations of a loop before it.", f, nest.var, conflict)
            bodies.append(body)
        if len(around) == self.depth:
            return replace(shared, body=tuple(s for body in bodies for s in body))
        guard = _common_guard(bodies)
        if guard is not None:
            bodies = [body[0].then for body in bodies if isinstance(body[0], If)]
        inner = tuple(body[0] for body in bodies if len(body) == 1 and isinstance(body[0], For))
        if len(inner) != len(bodies):
            refuse(self, f"loop {shared.var!r} does not hold one loop {self.depth} levels deep.", f, shared.var)
        merged: Stmt = self._merge(f, quick, inner, leader, around)
        return replace(shared, body=(merged if guard is None else If(guard, (merged,)),))


def _waits(before: Block, s: Stmt) -> bool:
    """Is there a barrier that keeps a statement behind others?"""
    return bool(before) and any(isinstance(n, Barrier) for each in (*before, s) for n in walk(each))


def _common_guard(bodies: list[Block]) -> Expr | None:
    """The condition that every body consists of, if all have the same and no body can change it."""
    conditions = [body[0].cond for body in bodies if len(body) == 1 and isinstance(body[0], If) and not body[0].orelse]
    same = len(conditions) == len(bodies) and all(c == conditions[0] for c in conditions)
    return conditions[0] if same and not any(isinstance(n, Load) for n in walk(conditions[0])) else None
