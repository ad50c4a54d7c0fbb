"""Pack: copy weights, once, into the order in which a kernel reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from cortex.ilir.ir import Accumulate, Buffer, For, Func, PackedGate, Packing, Scope
from cortex.ir.node import Node, rewrite, walk
from cortex.ir.scalar import Expr, Index, Int, Load, Var
from cortex.ir.simplify import ceildiv, floordiv, free_vars, mod, substitute
from cortex.ir.step import Step, step
from cortex.schedule.locate import Block, Names, constant_extent, find_loop, reach, refuse, replace_loop


@step
class Pack(Step[Func]):
    """Store the weights that a loop over output columns reads as panels of `width` columns, gates side by side.

    before:  for j in 0..256: for k in 0..256: i[j] += U[j, k] * s[k]
                                for k in 0..256: o[j] += U[256 + j, k] * s[k]
    after:   ... i[j] += packed[j // 16, k, 0, j mod 16] * s[k]; o[j] += packed[j // 16, k, 1, j mod 16] * s[k]
    legal:   always for params whose index uses only the columns, reduction loops and outer loops that stay between 0
             and a constant, and no index function; weights that do not depend on the column stay as they are.
    """

    columns: str
    width: int

    def apply(self, f: Func) -> Func:
        """`f` with packed weights."""
        loop = find_loop(f, self.columns, self)
        extent = constant_extent(loop)
        if self.width < 1:
            refuse(self, f"a panel cannot have {self.width} columns; use at least 1.", f, self.columns)
        if extent is None:
            refuse(self, f"the extent of {self.columns!r} is not constant.", f, self.columns)
        uses = _weights_read(f, loop)
        if not uses:
            refuse(self, f"no weight depends on the column {self.columns!r}.", f, self.columns)
        together: dict[tuple[tuple[int, ...], int, int], list[WeightUse]] = {}
        for use in uses:
            together.setdefault((use.lead, use.depth, use.turn), []).append(use)
        names = Names(f)
        packed = [self._panel(names, extent, group) for group in together.values()]
        moved = {old: new for _, _, loads in packed for old, new in loads.items()}
        new = replace_loop(f, self.columns, (rewrite(loop, lambda n: moved.get(n, n) if isinstance(n, Load) else n),))
        return replace(
            new,
            buffers=(*f.buffers, *(buffer for buffer, _, _ in packed)),
            packings=(*f.packings, *(packing for _, packing, _ in packed)),
        )

    def _panel(self, names: Names, extent: int, group: list[WeightUse]) -> tuple[Buffer, Packing, dict[Load, Load]]:
        """One packed buffer for weights that are read with the same reduction, and the loads that replace theirs."""
        name = names.fresh(f"{self.columns}_packed")
        column = Var(self.columns)
        gates: list[PackedGate] = []
        loads: dict[Load, Load] = {}
        for use in group:
            canonical: dict[str, Expr] = {v: Var(f"o{i}") for i, v in enumerate(use.outer)}
            canonical |= {self.columns: Var("j"), use.reduction: Var("k")}
            gate = PackedGate(use.load.buffer, tuple(substitute(i, canonical) for i in use.load.index))
            if gate not in gates:
                gates.append(gate)
            place = (floordiv(column, self.width), Var(use.reduction), Int(gates.index(gate)), mod(column, self.width))
            loads[use.load] = Load(name, (*(Var(v) for v in use.outer), *place))
        lead, depth = group[0].lead, group[0].depth
        shape = (*(Int(e) for e in lead), ceildiv(extent, self.width), Int(depth), Int(len(gates)), Int(self.width))
        packing = Packing(name, lead, extent, depth, self.width, tuple(gates))
        return Buffer(name, "f32", shape, Scope.PACKED), packing, loads


@dataclass(frozen=True)
class WeightUse:
    """A load of a param that depends on the column, inside a reduction.

    `outer` are the loops its index uses besides the column and the innermost reduction loop, with extents `lead`;
    `reduction` is that innermost loop, of extent `depth`. `turn` counts the reductions before this one that add to
    the same element: they run one after the other and so are packed apart.
    """

    load: Load
    outer: tuple[str, ...]
    lead: tuple[int, ...]
    reduction: str
    depth: int
    turn: int


def _weights_read(f: Func, loop: For) -> list[WeightUse]:
    """The weights that the sums in a loop over columns read, and that can be packed."""
    params = {b.name for b in f.buffers if b.scope is Scope.PARAM}
    around = _constant_loops_around(f, loop.var)
    found: list[WeightUse] = []
    turns: Counter[str] = Counter()
    for reductions, accumulate in sums_in(loop.body, ()):
        extents = dict(around)
        for r in reductions:
            if (e := reach(r, extents)) is not None:
                extents[r.var] = e
        last = reductions[-1].var
        turn = turns[accumulate.buffer]
        turns[accumulate.buffer] += 1
        if last not in extents:
            continue
        for n in walk(accumulate.value):
            if isinstance(n, Load) and n.buffer in params and loop.var in free_vars(n.index):
                used = free_vars(n.index) - {loop.var, last}
                if used <= set(extents) and not _depends_on_request(n):
                    outer = tuple(v for v in extents if v in used)
                    found.append(WeightUse(n, outer, tuple(extents[v] for v in outer), last, extents[last], turn))
    return found


def _depends_on_request(load: Load) -> bool:
    """Does an index function say which weight is read? Packing happens before there is a request."""
    return any(isinstance(n, Index | Load) for i in load.index for n in walk(i))


def sums_in(body: Block, loops: tuple[For, ...]) -> list[tuple[tuple[For, ...], Accumulate]]:
    """Every accumulation in the reduction loops of a column's body, with those loops."""
    found: list[tuple[tuple[For, ...], Accumulate]] = []
    for s in body:
        if isinstance(s, For):
            found += sums_in(s.body, (*loops, s))
        elif isinstance(s, Accumulate) and loops:
            found.append((loops, s))
    return found


def _constant_loops_around(f: Func, name: str) -> dict[str, int]:
    """The loops of constant extent around the loop `name`, outermost first."""

    def search(body: Block, path: tuple[For, ...]) -> tuple[For, ...] | None:
        for s in body:
            if isinstance(s, For) and s.var == name:
                return path
            for inner in _bodies(s):
                found = search(inner, (*path, s) if isinstance(s, For) else path)
                if found is not None:
                    return found
        return None

    return {loop.var: e for loop in search(f.body, ()) or () if (e := constant_extent(loop)) is not None}


def _bodies(s: Node) -> list[Block]:
    match s:
        case For(body=body):
            return [body]
        case _:
            return [getattr(s, "then", ()), getattr(s, "orelse", ())]
