"""Every access in the text of a program, with all that is known where it stands.

    for n in 0..num_nodes: if child(n) >= 0: h[child(n), 3] = 0.0

    site   store h[child(n), 3]   given   0 <= n, n < num_nodes, child(n) >= 0

Loops are not expanded, so there are as many sites as the text has accesses. Loop variables are within their
bounds, conditions on the way hold, a let equals its value; both arms of a `Select` are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from cortex.ilir.ir import Accumulate, Barrier, Buffer, For, Func, If, Let, Stmt, Store, Switch
from cortex.ilir.to_python import extents
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Index, Int, Load, Unary, Var, dtype_of
from cortex.poly.facts import le, lt

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
    yield from _Walk(f, padding).block(f.body, (), ())
    for p in f.packings:
        ranges = {f"o{i}": n for i, n in enumerate(p.outer)} | {"j": p.columns, "k": p.depth}
        given = tuple(e for name, n in ranges.items() for e in (le(Int(0), Var(name)), lt(Var(name), Int(n))))
        for gate in p.gates:
            yield Site("pack", gate.param, gate.index, f.buffer(gate.param).shape, given, ())


class _Walk:
    def __init__(self, f: Func, padding: bool) -> None:
        def shape(b: Buffer) -> tuple[Expr, ...]:
            return extents(b) if padding else b.shape

        self.extents = {b.name: shape(b) for b in f.buffers} | {i.name: (i.extent,) for i in f.index_functions}

    def block(self, body: tuple[Stmt, ...], given: tuple[Expr, ...], loops: tuple[str, ...]) -> Iterator[Site]:
        for s in body:
            match s:
                case For(var, lo, hi, inner):
                    yield from self.reads((lo, hi), given, loops)
                    v = Var(var)
                    yield from self.block(inner, (*given, le(lo, v), lt(v, hi)), (*loops, var))
                case If(cond, then, orelse):
                    yield from self.reads((cond,), given, loops)
                    yield from self.block(then, (*given, cond), loops)
                    yield from self.block(orelse, (*given, Unary("not", cond)), loops)
                case Switch(value, cases):
                    yield from self.reads((value,), given, loops)
                    for case in cases:
                        chosen = Binary("eq", value, Int(case.value))
                        yield from self.block(case.body, (*given, chosen), loops)
                case Let(var, value):
                    yield from self.reads((value,), given, loops)
                    if dtype_of(value) == "i64":
                        given = (*given, Binary("eq", var, value))
                case Store(buffer, index, value):
                    yield from self.reads((*index, value), given, loops)
                    yield Site("store", buffer, index, self.extents[buffer], given, loops)
                case Accumulate(buffer, index, _, value):
                    yield from self.reads((*index, value), given, loops)
                    yield Site("accumulate", buffer, index, self.extents[buffer], given, loops)
                case Barrier():
                    pass
                case _:
                    assert_never(s)

    def reads(self, values: tuple[Expr, ...], given: tuple[Expr, ...], loops: tuple[str, ...]) -> Iterator[Site]:
        for value in values:
            for n in walk(value):
                if isinstance(n, Load):
                    yield Site("load", n.buffer, n.index, self.extents[n.buffer], given, loops)
                elif isinstance(n, Index):
                    yield Site("index", n.fn, n.args, self.extents[n.fn], given, loops)
