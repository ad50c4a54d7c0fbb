"""Which iterations of loops may touch the same element.

The tests are sound and simple: two accesses of one buffer are *separate* when a declared fact keeps them apart,
and *aligned* in a loop when some dimension has the same index in both, a function of the loop variable that
takes each value once. Aligned accesses meet only within one iteration of that loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cortex.ilir.ir import Accumulate, For, Func, If, Let, Stmt, Store, Switch
from cortex.ir.node import Node, walk
from cortex.ir.scalar import Expr, Index, Load, Var
from cortex.ir.simplify import affine, free_vars


@dataclass(frozen=True)
class Access:
    """One read or write in the text of a program, with the loops of that text around it."""

    buffer: str
    index: tuple[Expr, ...]
    writes: bool
    loops: tuple[For, ...]


def accesses(stmts: tuple[Stmt, ...], loops: tuple[For, ...] = ()) -> Iterator[Access]:
    """All accesses of a statement list."""
    for s in stmts:
        match s:
            case For(lo=lo, hi=hi, body=body):
                yield from _reads(lo, loops)
                yield from _reads(hi, loops)
                yield from accesses(body, (*loops, s))
            case If(cond=cond, then=then, orelse=orelse):
                yield from _reads(cond, loops)
                yield from accesses(then, loops)
                yield from accesses(orelse, loops)
            case Switch(value=value, cases=cases):
                yield from _reads(value, loops)
                for case in cases:
                    yield from accesses(case.body, loops)
            case Let(value=value):
                yield from _reads(value, loops)
            case Store(buffer, index, value) | Accumulate(buffer, index, _, value):
                for e in (*index, value):
                    yield from _reads(e, loops)
                yield Access(buffer, index, True, loops)
            case _:
                pass


def _reads(e: Node, loops: tuple[For, ...]) -> Iterator[Access]:
    for n in walk(e):
        if isinstance(n, Load):
            yield Access(n.buffer, n.index, False, loops)


@dataclass(frozen=True)
class Dependences:
    """Answers questions about a function from the declared facts of its index functions."""

    facts: Mapping[str, frozenset[str]]

    @staticmethod
    def of(f: Func) -> Dependences:
        """The facts of a function."""
        return Dependences({i.name: frozenset(i.facts) for i in f.index_functions})

    def conflicts(
        self, a: tuple[Stmt, ...], b: tuple[Stmt, ...], around: tuple[For, ...] = ()
    ) -> Iterator[tuple[Access, Access]]:
        """Pairs of accesses of `a` and `b`, both inside the loops `around`, to one buffer, a write among them.

        Pairs that are separate are left out.
        """
        by_buffer: dict[str, list[Access]] = {}
        for x in accesses(a, around):
            by_buffer.setdefault(x.buffer, []).append(x)
        for y in accesses(b, around):
            for x in by_buffer.get(y.buffer, ()):
                if (x.writes or y.writes) and not self.separate(x, y):
                    yield x, y

    def commute(self, a: Stmt, b: Stmt) -> bool:
        """May two neighbouring statements change places?"""
        return next(self.conflicts((a,), (b,)), None) is None

    def separate(self, x: Access, y: Access) -> bool:
        """One access is at a node of the current group, the other at a node outside it."""
        return any(
            self.in_group(p, at.loops) and self.outside_group(q)
            for p, q, at in ((x.index[0], y.index[0], x), (y.index[0], x.index[0], y))
        ) if x.index else False

    def in_group(self, e: Expr, loops: tuple[For, ...]) -> bool:
        """Is `e` a node of the group at hand: the variable of a loop over the group's nodes?"""
        return isinstance(e, Var) and any(
            loop.var == e.name and isinstance(loop.lo, Index) and loop.lo.fn == "group_start" for loop in loops
        )

    def outside_group(self, e: Expr) -> bool:
        """Is `e` the value of an index function that leads out of the group?"""
        return isinstance(e, Index) and "outside_group" in self.facts.get(e.fn, frozenset())

    def injective(self, e: Expr, var: str, inner: frozenset[str]) -> bool:
        """Does `e` take a different value in every iteration of `var`, whatever the `inner` variables are?"""
        match e:
            case Index(fn, (arg,)):
                return "injective" in self.facts.get(fn, frozenset()) and self.injective(arg, var, inner)
            case _:
                form = affine(e, var)
                return form is not None and form[0] != 0 and not (free_vars(form[1]) & inner)

    def aligned(self, x: Access, y: Access, var: str) -> bool:
        """Do `x` and `y` meet only within one iteration of `var`?"""
        inner = frozenset(name for at in (x, y) for name in _inside(at.loops, var))
        return any(a == b and self.injective(a, var, inner) for a, b in zip(x.index, y.index, strict=True))

    def all_aligned(self, a: tuple[Stmt, ...], b: tuple[Stmt, ...], around: tuple[For, ...]) -> bool:
        """Do all dependences between bodies of the innermost loop of `around` stay within one iteration of it?"""
        return all(self.aligned(x, y, around[-1].var) for x, y in self.conflicts(a, b, around))


def _inside(loops: tuple[For, ...], var: str) -> list[str]:
    """Names of the loops inside the loop `var`."""
    names = [loop.var for loop in loops]
    return names[names.index(var) + 1 :]
