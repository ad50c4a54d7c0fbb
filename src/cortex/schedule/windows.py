"""Windows: what is computed ahead of the recursion is computed for a few groups at a time."""

from __future__ import annotations

from dataclasses import replace

from cortex.ilir.ir import Accumulate, Barrier, For, Func, Let, LoopKind, Scope, Stmt, Store
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Index, Int, Load, Var
from cortex.ir.simplify import add, free_vars, sub
from cortex.ir.step import Step, step
from cortex.lower.linear_form import MAX_WINDOW, NUM_GROUPS, NUM_NODES, NUM_WINDOWS, WINDOW_GROUP, window_kind
from cortex.lower.promises import promises_of_windows, window_first
from cortex.poly.accesses import Access, accesses
from cortex.poly.quick import QuickRules
from cortex.schedule.locate import Block, Names, find_loop, refuse

STARTS = "kind_start"


@step
class Windows(Step[Func]):
    """Compute what comes before the loop over groups for the nodes of a window, then the groups of that window.

    before:  for i in kind_start(1)..kind_start(2): x[kind_node(i), j] = ...            x has num_nodes rows
             for g in 0..num_groups: for n in group_start(g)..: ... x[n, j] ...
    after:   for w in 0..num_windows:
               let first = group_start(window_group(w + 1) - 1)
               for i in window_kind_1(w)..window_kind_1(w + 1): x[kind_node(i) - first, j] = ...
               for g in window_group(w)..window_group(w + 1): for n in group_start(g)..: ... x[n - first, j] ...
    legal:   a nest before the loop over groups is taken along if all that it writes are temporaries with a row per
             node, each row by the iteration of its node, that are read by such nests at their own nodes, inside the
             loop over groups at nodes of the group at hand, and nowhere else. There must be one.

    The temporaries have rows for one window, of 256 nodes or one group, instead of all nodes of the request, and stay
    in the caches. A request of few nodes is one window.
    """

    groups: str = "g"

    def apply(self, f: Func) -> Func:
        """`f` with a loop over windows."""
        loop = find_loop(f, self.groups, self)
        if loop not in f.body or (loop.lo, loop.hi, loop.kind) != (Int(0), NUM_GROUPS, LoopKind.SERIAL):
            refuse(self, f"{self.groups!r} is not the loop over all groups.", f, self.groups)
        moved = _moved(f, loop)
        if not moved:
            refuse(self, "nothing before the loop over groups is read by its own node alone.", f, self.groups)
        if any(isinstance(n, Barrier) for n in walk(f)):
            refuse(self, "barriers are placed already.", f, self.groups)
        names = Names(f)
        w, first = Var(names.fresh("w")), Var(names.fresh("w_first"))
        written = {a.buffer for unit in moved for a in accesses(unit) if a.writes}
        narrow = {b.name for b in f.buffers if b.name in written and b.scope is Scope.SCRATCH}

        def in_window(n: Node) -> Node:
            match n:
                case Load() | Store() | Accumulate() if n.buffer in narrow:
                    return replace(n, index=(sub(n.index[0], first), *n.index[1:]))
                case _:
                    return n

        def of_kind(s: Stmt, kind: int) -> Stmt:
            def places(n: Node) -> Node:
                match n:
                    case Index(fn, (Int(k),)) if fn == STARTS:
                        return Index(window_kind(kind).name, (add(w, k - kind),))
                    case _:
                        return in_window(n)

            new: Stmt = rewrite(s, places)
            return new

        begin, end = (Index(WINDOW_GROUP.name, (e,)) for e in (w, add(w, 1)))
        inner = rewrite(replace(loop, lo=begin, hi=end), in_window)
        nests = tuple(of_kind(s, kind) for unit, kind in moved.items() for s in unit)
        stay = tuple(s for unit in _units(f.body[: f.body.index(loop)]) if unit not in moved for s in unit)
        new = For(w.name, Int(0), NUM_WINDOWS, (Let(first, window_first(w)), *nests, inner))
        kinds = tuple(sorted(set(moved.values())))
        return replace(
            f,
            sizes=(*f.sizes, NUM_WINDOWS.name, MAX_WINDOW.name),
            index_functions=(*f.index_functions, WINDOW_GROUP, *map(window_kind, kinds)),
            buffers=tuple(replace(b, shape=(MAX_WINDOW, *b.shape[1:])) if b.name in narrow else b for b in f.buffers),
            body=(*stay, new, *f.body[f.body.index(loop) + 1 :]),
            promises=(*f.promises, *promises_of_windows(kinds)),
        )


def _units(body: Block) -> list[Block]:
    """Statements with the names that are bound for them: those that share a name are one unit."""
    units: list[Block] = []
    names: list[set[str]] = []  # bound by each unit
    for s in body:
        used = free_vars(s)
        with_it = [i for i, bound in enumerate(names) if bound & used]
        new = {s.var.name} if isinstance(s, Let) else set()
        if not with_it:
            units.append((s,))
            names.append(new)
            continue
        first = with_it[0]
        units[first] = (*(x for i in with_it for x in units[i]), s)
        names[first] = new.union(*(names[i] for i in with_it))
        for i in reversed(with_it[1:]):
            del units[i], names[i]
    return units


def rows_of_all_nodes(f: Func) -> set[str]:
    """The temporaries with a row for every node of a request: without any, there is nothing for windows to do."""
    return {b.name for b in f.buffers if b.scope is Scope.SCRATCH and b.shape and b.shape[0] == NUM_NODES}


def _moved(f: Func, loop: For) -> dict[Block, int]:
    """What can be taken along, in units, each with the kind that it is for."""
    at = f.body.index(loop)
    known = QuickRules.of(f)
    narrow = rows_of_all_nodes(f)
    narrow -= {a.buffer for a in accesses(f.body[at + 1 :])}
    for a in accesses((loop,)):
        if a.buffer in narrow and (a.writes or known.group(a.index[0], a.loops) != Var(loop.var)):
            narrow.discard(a.buffer)
    own = {b.name for b in f.buffers if b.scope in (Scope.PRIVATE, Scope.REGISTER)}
    units = _units(f.body[:at])
    uses = [list(accesses(unit)) for unit in units]
    writes = [{a.buffer for a in used if a.writes} - own for used in uses]
    later = free_vars(f.body[at:])
    moved = {  # by number: to hash a unit takes long
        i: kind
        for i, unit in enumerate(units)
        if (kind := _kind(unit)) is not None and not any(isinstance(s, Let) and s.var.name in later for s in unit)
    }
    while True:
        for i, used in enumerate(uses):
            narrow -= {a.buffer for a in used if i not in moved or not _is_own(a)}
        kept = {i: kind for i, kind in moved.items() if writes[i] <= narrow}
        if kept == moved:
            return {units[i]: kind for i, kind in moved.items()}
        moved = kept


def _is_own(a: Access) -> bool:
    """Is this at a row of the node that an iteration over the nodes of a kind is for?"""
    return bool(a.index) and isinstance(a.index[0], Index) and a.index[0].fn == "kind_node"


def _kind(unit: Block) -> int | None:
    """The kind whose nodes a nest is for; None where that is not one."""
    found = {n.args[0] for s in unit for n in walk(s) if isinstance(n, Index) and n.fn == STARTS}
    values = sorted(e.value for e in found if isinstance(e, Int))
    return values[0] if len(values) == len(found) == 2 and values[1] == values[0] + 1 else None
