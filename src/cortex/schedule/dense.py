"""Dense: index a temporary by its place in the group instead of by node."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, For, Func, Scope, Stmt, Store
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Expr, Index, Load, Var
from cortex.ir.simplify import add, sub
from cortex.ir.step import Step, step
from cortex.lower.linear_form import MAX_GROUP, NUM_GROUPS, NUM_NODES, max_edges
from cortex.poly.accesses import Access, accesses
from cortex.poly.legal import stays_between
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import buffers_of, find_loop, refuse, replace_loop


@step
class Dense(Step[Func]):
    """Store temporaries densely: rows of the group at hand, one after the other, reused by the next group.

    before:  for g: for n in group_start(g)..: t[n, j] = ...              t has num_nodes rows
    after:   for g: for n in group_start(g)..: t[n - group_start(g), j] = ...     t has max_group rows
    legal:   the buffers are scratch and used only inside the loop over groups, at rows of the group at hand (each
             group writes what it reads).
    """

    buffers: tuple[str, ...]
    groups: str = "g"

    def apply(self, f: Func) -> Func:
        """`f` with smaller temporaries."""
        loop = find_loop(f, self.groups, self)
        if loop.hi != NUM_GROUPS:
            refuse(self, f"{self.groups!r} is not the loop over groups.", f, self.groups)
        outside = buffers_of(s for s in f.body if s is not loop)
        scopes = {b.name: b.scope for b in f.buffers}
        for name in self.buffers:
            if scopes.get(name) is not Scope.SCRATCH:
                refuse(self, f"{name!r} is not a temporary.", f, self.groups)
            if name in outside:
                refuse(self, f"{name!r} is used outside the loop over groups.", f, self.groups)
        known = QuickRules.of(f)
        used: dict[str, list[Access]] = {}
        for a in accesses((loop,)):
            used.setdefault(a.buffer, []).append(a)
        start: dict[str, Expr] = {}
        end: dict[str, Expr] = {}
        shapes: dict[str, tuple[Expr, ...]] = {}
        for name in self.buffers:
            rows, *columns = f.buffer(name).shape
            first = Index("group_start", (Var(self.groups),))
            after = add(first, Index("group_len", (Var(self.groups),)))
            if rows == NUM_NODES:
                start[name], end[name] = first, after
                shapes[name], counted = (MAX_GROUP, *columns), "group_start"
            elif isinstance(rows, Var) and rows.name.startswith("num_") and rows.name.endswith("_edges"):
                relation = rows.name.removeprefix("num_").removesuffix("_edges")
                counted = f"{relation}_ptr"
                start[name], end[name] = Index(counted, (first,)), Index(counted, (after,))
                shapes[name] = (max_edges(relation), *columns)
            else:
                refuse(self, f"{name!r} has no row per node or edge.", f, self.groups)
            for a in used.get(name, ()):
                by_form = known.group(a.index[0], a.loops, counted) == Var(self.groups)
                if not by_form and not stays_between(f, self.groups, a, start[name], end[name]):
                    refuse(self, f"{name!r} is used at rows that may be of another group: {a}.", f, self.groups)

        def shift(n: Node) -> Node:
            match n:
                case Load() | Store() | Accumulate() if n.buffer in start:
                    return replace(n, index=(sub(n.index[0], start[n.buffer]), *n.index[1:]))
                case _:
                    return n

        new: Stmt = rewrite(loop, shift)
        assert isinstance(new, For)
        buffers = tuple(replace(b, shape=shapes[b.name]) if b.name in shapes else b for b in f.buffers)
        return replace(replace_loop(f, self.groups, (new,)), buffers=buffers)
