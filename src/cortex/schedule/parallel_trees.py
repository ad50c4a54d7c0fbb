"""ParallelTrees: share whole structures among the threads of the team."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortex.ilir.ir import Accumulate, Barrier, For, Func, LoopKind, Scope, Store
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.polynomial import CONSTANT, expand
from cortex.ir.scalar import Expr, Index, Int, Load, Var
from cortex.ir.simplify import add
from cortex.ir.step import Step, step
from cortex.lower.linear_form import MAX_GROUP, NUM_GROUPS, NUM_NODES, NUM_PARTS, PART_GROUP
from cortex.lower.promises import promises_of_parts
from cortex.poly.accesses import Access, accesses
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Names, buffers_of, find_loop, refuse, replace_loop
from cortex.schedule.ownership import SHARED
from cortex.schedule.parallel import is_parallel


@step
class ParallelTrees(Step[Func]):
    """Divide the request into parts that share no node, and let a thread run all groups of a part.

    before:  for g in 0..num_groups:
               for n in group_start(g)..: t[n - group_start(g), j] = ...
    after:   for part in 0..num_parts parallel:
               for g in part_group(part)..part_group(part + 1):
                 for n in group_start(g)..: t[part, n - group_start(g), j] = ...
    legal:   nothing in the loop over groups is parallel; all that it touches of states and temporaries that it writes
             is at nodes or edges of the group at hand, at nodes below those, which are of the same part, or in
             temporaries with rows per group (`Dense`), of which every part gets a copy.

    No thread waits for another before all have finished their parts. A request of one structure is one part.
    """

    groups: str = "g"

    def apply(self, f: Func) -> Func:
        """`f` with a parallel loop over parts."""
        loop = find_loop(f, self.groups, self)
        if loop not in f.body or (loop.lo, loop.hi, loop.kind) != (Int(0), NUM_GROUPS, LoopKind.SERIAL):
            refuse(self, f"{self.groups!r} is not the loop over all groups.", f, self.groups)
        inside = next((n for n in walk(loop) if is_parallel(n) or isinstance(n, Barrier)), None)
        if inside is not None:
            what = f"the parallel loop {inside.var!r}" if isinstance(inside, For) else "a barrier"
            refuse(self, f"{self.groups!r} contains {what}.", f, self.groups)
        used = list(accesses((loop,)))
        by_all = {b.name for b in f.buffers if b.scope is Scope.COPIED}
        if name := next((a.buffer for a in used if a.writes and a.buffer in by_all), None):
            refuse(self, f"{name!r} is computed by every thread for itself, for all parts.", f, self.groups)
        copied = self._copied(f, loop, used)
        names = Names(f)
        part = Var(names.fresh("part"))

        def of_part(n: Node) -> Node:
            match n:
                case Load() | Store() | Accumulate() if n.buffer in copied:
                    return replace(n, index=(part, *n.index))
                case _:
                    return n

        first, after = (Index(PART_GROUP.name, (e,)) for e in (part, add(part, 1)))
        each = rewrite(replace(loop, lo=first, hi=after), of_part)
        new = For(part.name, Int(0), NUM_PARTS, (each,), LoopKind.PARALLEL)
        buffers = (replace(b, shape=(NUM_PARTS, *b.shape)) if b.name in copied else b for b in f.buffers)
        return replace(
            replace_loop(f, self.groups, (new,)),
            sizes=(*f.sizes, NUM_PARTS.name),
            index_functions=(*f.index_functions, PART_GROUP),
            buffers=tuple(buffers),
            promises=(*f.promises, *promises_of_parts()),
        )

    def _copied(self, f: Func, loop: For, used: list[Access]) -> frozenset[str]:
        """The temporaries with rows per group; refuses where parts may meet at anything else."""
        in_part = _InPart(QuickRules.of(f), Var(self.groups))
        outside = buffers_of(s for s in f.body if s is not loop)
        written = {a.buffer for a in used if a.writes}
        copied: set[str] = set()
        for b in f.buffers:
            if b.scope not in SHARED or b.name not in written:
                continue
            rows = b.shape[0] if b.shape else None
            if b.scope is Scope.SCRATCH and isinstance(rows, Var) and _per_group(rows):
                if b.name in outside:
                    refuse(
                        self, f"{b.name!r} has rows per group and is used outside the loop over groups.", f, loop.var
                    )
                copied.add(b.name)
                continue
            for a in used:
                if a.buffer == b.name and not in_part.at(rows, a):
                    refuse(self, f"{b.name!r} is used at rows that may be of another part: {a}.", f, loop.var)
        return frozenset(copied)


def _per_group(rows: Var) -> bool:
    return rows == MAX_GROUP or (rows.name.startswith("max_") and rows.name.endswith("_edges"))


@dataclass(frozen=True)
class _InPart:
    """Tells, by their form, the nodes and edges that are of the part of group `group`."""

    known: QuickRules
    group: Var

    def at(self, rows: Expr | None, a: Access) -> bool:
        """Is an access to a buffer with `rows` rows at a row of the part?"""
        if rows == NUM_NODES:
            return self.node(a.index[0], a.loops)
        if isinstance(rows, Var) and rows.name.startswith("num_") and rows.name.endswith("_edges"):
            return self.edge(a.index[0], a.loops, rows.name.removeprefix("num_").removesuffix("edges") + "ptr")
        return False

    def node(self, e: Expr, loops: tuple[For, ...]) -> bool:
        """A node of the group, or the child of a node or at an edge of the part."""
        match e:
            case Index(fn, (arg,)) if "outside_group" in self.known.facts.get(fn, ()):
                pointers = fn.removesuffix("child") + "ptr"
                if pointers in self.known.facts:
                    return self.edge(arg, loops, pointers)
                return self.node(arg, loops)
            case _:
                return self.known.group(e, loops) == self.group

    def edge(self, e: Expr, loops: tuple[For, ...], pointers: str) -> bool:
        """An edge from a node of the group, or from a node of the part that the edge is counted from."""
        if self.known.group(e, loops, pointers) == self.group:
            return True
        match [term for term in expand(e, lambda x: x).items() if term[0] != CONSTANT]:
            case [((Index(fn, (first,)),), 1)] if fn == pointers:
                return self.node(first, loops)
            case _:
                return False
