"""Flatten: run a nest of loops as one."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from cortex.ilir.ir import Func, LoopKind
from cortex.ir.scalar import Expr, Int, Var
from cortex.ir.simplify import floordiv, mod, substitute
from cortex.ir.step import Step, step
from cortex.schedule.locate import Names, constant_extent, find_loop, perfect_chain, refuse, replace_loop


@step
class Flatten(Step[Func]):
    """Run loops that stand directly inside each other as one, over all their iterations in the same order.

    before:  for p in 0..7: for q in 0..5: S(p, q)
    after:   for p_q in 0..35: S(p_q // 5, p_q mod 5)                   (loops=("p", "q"))
    legal:   each loop holds nothing but the next; all run from 0 to a constant, and none is vectorized or parallel.
    """

    loops: tuple[str, ...]

    def apply(self, f: Func) -> Func:
        """`f` with the loops made one."""
        for name in self.loops:
            find_loop(f, name, self)
        if len(self.loops) < 2 or len(set(self.loops)) != len(self.loops):
            refuse(self, "name at least two loops, each once, outermost first.", f, self.loops[0] if self.loops else "")
        chain = perfect_chain(find_loop(f, self.loops[0], self), self.loops[-1])
        if chain is None or tuple(loop.var for loop in chain) != self.loops:
            refuse(self, "the loops do not stand directly inside each other, in this order.", f, self.loops[0])
        extents: list[int] = []
        for loop in chain:
            extent = constant_extent(loop)
            if extent is None:
                refuse(self, f"{loop.var!r} does not run from 0 to a constant.", f, loop.var)
            if loop.kind in (LoopKind.VECTORIZED, LoopKind.PARALLEL):
                refuse(self, f"{loop.var!r} is {loop.kind.value} already.", f, loop.var)
            extents.append(extent)
        all_of_them = Var(Names(f).fresh("_".join(self.loops)))
        values: dict[str, Expr] = {}
        for place, name in enumerate(self.loops):
            inside = prod(extents[place + 1 :])
            outer = floordiv(all_of_them, inside) if inside > 1 else all_of_them
            values[name] = mod(outer, extents[place]) if place else outer
        body = substitute(chain[-1].body, values)
        new = replace(chain[0], var=all_of_them.name, hi=Int(prod(extents)), body=body, turned=None)
        return replace_loop(f, self.loops[0], (new,))
