"""Reorder: change which loop of a nest is inside which."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortex.ilir.ir import For, Func, If, LoopKind
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Index, Load
from cortex.ir.simplify import free_vars
from cortex.ir.step import Step, step
from cortex.poly.legal import why_not_reorder
from cortex.schedule.locate import Block, find_loop, loop_names, refuse, replace_loop


@step
class Reorder(Step[Func]):
    """Nest loops in the order given, outermost first.

    before:  for i: for j: for k: S(i, j, k)
    after:   for k: for i: for j: S(i, j, k)                    (loops=("k", "i", "j"))
    legal:   the loops are perfectly nested, but for conditions between them, which move inside; no bound depends on
             a loop that would then be inside it; iterations that touch one element, a write among them, keep
             their order. So a sum over k may change places with the loops over the elements, and every element is
             still summed in the order of k. A vectorized loop stays innermost.
    """

    loops: tuple[str, ...]

    def apply(self, f: Func) -> Func:
        """`f` with the loops nested in the new order."""
        for name in self.loops:
            find_loop(f, name, self)
        if len(self.loops) < 2 or len(set(self.loops)) != len(self.loops):
            refuse(self, "name at least two loops, each once.", f, self.loops[0] if self.loops else "")
        outermost = next(name for name in loop_names(f) if name in self.loops)
        nest = _nest(find_loop(f, outermost, self), set(self.loops))
        if nest is None:
            refuse(self, f"the loops are not perfectly nested inside {outermost!r}.", f, outermost)
        chain = {loop.var: loop for loop in nest.loops}
        for number, name in enumerate(self.loops):
            loop = chain[name]
            inside = set(self.loops[number:])
            early = (free_vars(loop.lo) | free_vars(loop.hi)) & inside
            if early:
                refuse(self, f"the bounds of {name!r} depend on {min(early)!r}.", f, name)
            if loop.turned is not None and (by := free_vars(loop.turned) & inside):
                refuse(self, f"{name!r} is turned by {min(by)!r} and must stay inside it.", f, name)
            if loop.kind is LoopKind.VECTORIZED and number != len(self.loops) - 1:
                refuse(self, f"{name!r} is vectorized and must stay innermost.", f, name)
        if nest.guards and chain[self.loops[-1]].kind is LoopKind.VECTORIZED:
            refuse(self, "a vectorized loop cannot hold the condition.", f, self.loops[-1])
        if conflict := why_not_reorder(f, nest.loops, self.loops, nest.guards, nest.body):
            refuse(self, "iterations that touch one element would change their order.", f, outermost, conflict)
        body = nest.body
        if nest.guards:
            cond = nest.guards[0]
            for each in nest.guards[1:]:
                cond = Binary("and", cond, each)
            body = (If(cond, body),)
        for name in reversed(self.loops):
            body = (replace(chain[name], body=body),)
        return replace_loop(f, outermost, body)


@dataclass(frozen=True)
class _Nest:
    """Loops around a body, outermost first, and the conditions that stood between them."""

    loops: tuple[For, ...]
    guards: tuple[Expr, ...]
    body: Block


def _nest(outermost: For, wanted: set[str]) -> _Nest | None:
    """The perfect nest of exactly the loops `wanted`; None when there is no such nest."""
    loops, guards, body = [outermost], list[Expr](), outermost.body
    while len(loops) < len(wanted):
        match body:
            case (For() as loop,) if loop.var in wanted:
                if guards and any(isinstance(n, Index) for bound in (loop.lo, loop.hi) for n in walk(bound)):
                    return None  # the condition may be what keeps the bound's index function in its domain
                loops.append(loop)
                body = loop.body
            case (If(cond, then, ()),) if not any(isinstance(n, Load) for n in walk(cond)):
                guards.append(cond)
                body = then
            case _:
                return None
    return _Nest(tuple(loops), tuple(guards), body)
