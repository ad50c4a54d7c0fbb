"""Find races by running: each item of each work-group alone, noting what it touches between barriers.

As tests/56_parallel/races.py does for threads. Items of one work-group are apart where either kind of barrier lies
between, those of two work-groups where a barrier of the team does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from cortex.ilir.interp import _FUNCTIONS
from cortex.ilir.ir import Barrier, Buffer, For, Func, If, LoopKind, Scope, Store
from cortex.ilir.to_python import to_python
from cortex.ilir.verify import PER_GROUP, PER_THREAD
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Expr, Float, Int, Var

Epoch = tuple[int, int]
AXES = (LoopKind.ITEMS_X, LoopKind.ITEMS_Y)


@dataclass
class _Epochs:
    """How many barriers of the team, and how many of either kind, an item has passed."""

    team: int = 0
    either: int = 0

    def __setitem__(self, at: int, value: float) -> None:
        self.team += at == 0
        self.either += 1


class _Memory:
    """A buffer that notes when it is touched, and holds zeros."""

    def __init__(self, epochs: _Epochs) -> None:
        self.epochs = epochs
        self.reads: dict[Epoch, set[int]] = defaultdict(set)
        self.writes: dict[Epoch, set[int]] = defaultdict(set)

    def __getitem__(self, at: int) -> float:
        self.reads[self.epochs.team, self.epochs.either].add(at)
        return 0.0

    def __setitem__(self, at: int, value: float) -> None:
        self.writes[self.epochs.team, self.epochs.either].add(at)


def share_of(f: Func, group: int, groups: int, item: tuple[int, int], items: tuple[int, int]) -> Func:
    """What one item runs, as a function of its own; barriers store to the buffer `epoch`."""

    def bound(loop: For, t: int) -> Expr:
        count = Binary("max", Binary("sub", loop.hi, loop.lo), Int(0))
        return Binary("add", loop.lo, Binary("floordiv", Binary("mul", Int(t), count), Int(groups)))

    def visit(n: Node) -> Node:
        match n:
            case For(kind=LoopKind.PARALLEL):
                return replace(n, lo=bound(n, group), hi=bound(n, group + 1), kind=LoopKind.SERIAL)
            case For(kind=kind) if kind in AXES:
                axis = AXES.index(kind)
                place = Binary("mod", Binary("sub", Var(n.var), n.lo), Int(items[axis]))
                mine = If(Binary("eq", place, Int(item[axis])), n.body)
                return replace(n, body=(mine,), kind=LoopKind.SERIAL)
            case Barrier(among):
                return Store("epoch", (Int(0 if among == "team" else 1),), Float(0.0))
            case _:
                return n

    new: Func = rewrite(f, visit)
    return replace(new, buffers=(*f.buffers, Buffer("epoch", "f32", (Int(2),), Scope.SCRATCH)))


def item_races(
    f: Func, sizes: Mapping[str, int], index: Mapping[str, Any], groups: int, items: tuple[int, int]
) -> Iterator[str]:
    """A line for each buffer at which two items race; one for items that meet different barriers."""
    arrays = [[int(x) for x in index[i.name]] if i.name in index else [] for i in f.index_functions]
    seen: list[tuple[int, dict[str, _Memory]]] = []
    ends: dict[int, set[Epoch]] = defaultdict(set)
    for group, y, x in product(range(groups), range(items[1]), range(items[0])):
        epochs = _Epochs()
        memory = {b.name: _Memory(epochs) for b in f.buffers}
        namespace = dict(_FUNCTIONS)
        exec(to_python(share_of(f, group, groups, (x, y), items), check_bounds=False).source, namespace)
        namespace["run"](*(sizes[s] for s in f.sizes), *arrays, *memory.values(), epochs)
        seen.append((group, memory))
        ends[group].add((epochs.team, epochs.either))
    if any(len(met) > 1 for met in ends.values()) or len({team for met in ends.values() for team, _ in met}) > 1:
        yield f"items meet different barriers: {dict(ends)}"
    for b in (b for b in f.buffers if b.scope not in PER_THREAD):
        for (g, one), (h, other) in combinations(seen, 2):
            if g == h or b.scope not in PER_GROUP:
                yield from _meetings(b.name, one[b.name], other[b.name], which=1 if g == h else 0)


def _meetings(name: str, one: _Memory, other: _Memory, which: int) -> Iterator[str]:
    for a, b in ((one, other), (other, one)):
        touched: dict[int, set[int]] = defaultdict(set)
        for accesses in (b.reads, b.writes):
            for epoch, elements in accesses.items():
                touched[epoch[which]] |= elements
        for epoch, written in a.writes.items():
            if both := written & touched[epoch[which]]:
                yield f"{name}: two items touch {min(both)}, one writes it, in epoch {epoch}"
