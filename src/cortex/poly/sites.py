"""Every access in the text of a program, with its bounds and all that is known where it stands.

Loops are not expanded, so there are as many sites as the text has accesses; both arms of a `Select` are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cortex.ilir.ir import Accumulate, Func, Store
from cortex.ilir.to_python import extents
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Index, Int, Load, Var
from cortex.poly.points import le, lt, points

Way = Literal["load", "store", "accumulate", "index", "pack"]


@dataclass(frozen=True)
class Site:
    """One access: `array[index]`, whose bounds are `extents`, the conditions it runs under, the loops around it."""

    way: Way
    array: str
    index: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    given: tuple[Expr, ...]
    loops: tuple[str, ...]


def sites(f: Func, padding: bool = True) -> Iterator[Site]:
    """All accesses of a function, in the order of its text, then those of its packings.

    The padding of a row counts as part of it unless `padding` is False.
    """
    shapes = {b.name: extents(b) if padding else b.shape for b in f.buffers}
    shapes |= {i.name: (i.extent,) for i in f.index_functions}
    for point in points(f):
        given, loops = point.given, tuple(loop.var for loop in point.loops)
        for e in point.evaluates:
            for n in walk(e):
                if isinstance(n, Load):
                    yield Site("load", n.buffer, n.index, shapes[n.buffer], given, loops)
                elif isinstance(n, Index):
                    yield Site("index", n.fn, n.args, shapes[n.fn], given, loops)
        if isinstance(point.stmt, Store | Accumulate):
            way: Way = "store" if isinstance(point.stmt, Store) else "accumulate"
            name = point.stmt.buffer
            yield Site(way, name, point.stmt.index, shapes[name], given, loops)
    for p in f.packings:
        ranges = {f"o{i}": n for i, n in enumerate(p.outer)} | {"j": p.columns, "k": p.depth}
        given = tuple(e for name, n in ranges.items() for e in (le(Int(0), Var(name)), lt(Var(name), Int(n))))
        for gate in p.gates:
            yield Site("pack", gate.param, gate.index, f.buffer(gate.param).shape, given, ())
