"""Which iterations of loops may touch the same element, by rules that need neither isl nor a prover.

They are sound and cheap, and enough for the default schedule; `legal` asks them first. Two accesses of one buffer
are *separate* when a declared fact keeps them apart, and *aligned* in a loop when some dimension has the same index in
both and that index determines the loop's variable. Aligned accesses meet only within one iteration of that loop.

A node is known by its form: `group_start(g)` plus an offset, whether that stands in a loop's lower bound, in a let
or in the index itself, is a node of group g. Lowering writes no other such sums, and steps replace a loop variable
only by expressions that take the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cortex.ilir.ir import Barrier, For, Func, If, Stmt, Switch
from cortex.ir.node import walk
from cortex.ir.polynomial import expand
from cortex.ir.scalar import Expr, Index, Int, Load, Var
from cortex.ir.simplify import free_vars, simplify
from cortex.poly.accesses import Access, accesses


@dataclass(frozen=True)
class Touched:
    """The accesses of a statement."""

    statement: Stmt
    """Held, so that its identity is not reused."""
    by_buffer: Mapping[str, list[Access]]
    has_barrier: bool

    @staticmethod
    def by(s: Stmt) -> Touched:
        """What a statement touches."""
        return Touched(s, _by_buffer(accesses((s,))), any(isinstance(n, Barrier) for n in walk(s)))


def _by_buffer(found: Iterable[Access]) -> dict[str, list[Access]]:
    by_buffer: dict[str, list[Access]] = {}
    for x in found:
        by_buffer.setdefault(x.buffer, []).append(x)
    return by_buffer


@dataclass(frozen=True)
class QuickRules:
    """Answers questions about a function from the declared facts of its index functions.

    `starts` are the lower bounds of all its loops: also a loop around the text compared tells what its variable is.
    """

    facts: Mapping[str, frozenset[str]]
    starts: Mapping[str, Expr]
    _touched: dict[int, Touched] = field(default_factory=dict, compare=False, repr=False)
    """What statements touch that were compared before, by identity: each is compared with many others."""

    @staticmethod
    def of(f: Func) -> QuickRules:
        """The facts of a function."""
        starts = {loop.var: loop.lo for loop in _loops(f.body)}
        return QuickRules({i.name: frozenset(i.facts) for i in f.index_functions}, starts)

    def conflicts(
        self,
        a: tuple[Stmt, ...],
        b: tuple[Stmt, ...],
        around: tuple[For, ...] = (),
        conditions: tuple[Expr, ...] = (),
    ) -> Iterator[tuple[Access, Access]]:
        """Pairs of accesses of `a` and `b` to one buffer, a write among them, leaving out those that are separate.

        Both texts stand inside the loops `around` and run where `conditions` hold.
        """
        by_buffer = _by_buffer(accesses(a, around, conditions))
        for y in accesses(b, around, conditions):
            for x in by_buffer.get(y.buffer, ()):
                if (x.writes or y.writes) and not self.separate(x, y):
                    yield x, y

    def commute(self, a: Stmt, b: Stmt) -> bool:
        """May two neighbouring statements change places?"""
        one, other = self._touches(a), self._touches(b)
        if one.has_barrier or other.has_barrier:
            return False
        if one.by_buffer.keys().isdisjoint(other.by_buffer):
            return True
        return not any(
            (x.writes or y.writes) and not self.separate(x, y)
            for buffer in one.by_buffer.keys() & other.by_buffer.keys()
            for x in one.by_buffer[buffer]
            for y in other.by_buffer[buffer]
        )

    def _touches(self, s: Stmt) -> Touched:
        if id(s) not in self._touched:
            self._touched[id(s)] = Touched.by(s)
        return self._touched[id(s)]

    def separate(self, x: Access, y: Access) -> bool:
        """One access is at a node of a group, the other at a node outside the same group.

        The group must be the same one for both: a loop over groups inside the text compared makes it two.
        """
        if not x.index:
            return False
        for inside, outside in ((x, y), (y, x)):
            group = self.group_left(outside.index[0], outside.loops)
            if group is not None and group == self.group(inside.index[0], inside.loops):
                return not free_vars(group) & {loop.var for at in (x, y) for loop in at.loops}
        return False

    def group(self, e: Expr, loops: tuple[For, ...], start: str = "group_start") -> Expr | None:
        """The g for which `e` is a node of group g, by its form; None when it has another form.

        With `start` = "LIST_ptr": the g for which `e` is an edge from a node of group g.
        """
        bounds = {**self.starts, **{loop.var: loop.lo for loop in loops}}
        total: dict[Expr, int] = {}
        for monomial, count in expand(e, lambda x: x).items():
            group = None
            match monomial:
                case (Var(name),) if name in bounds:
                    group = self.group(bounds[name], loops, start)
                case (Index(fn, (arg,)),) if fn == start:
                    group = arg if start == "group_start" else self.group(arg, loops)
                case (Index(fn, (arg,)),) if start == "group_start" and fn.endswith("_parent"):
                    group = self.group(arg, loops, fn.removesuffix("parent") + "ptr")
                case _:
                    pass
            if group is not None:
                total[group] = total.get(group, 0) + count
        based = [(group, count) for group, count in total.items() if count]
        return based[0][0] if len(based) == 1 and based[0][1] == 1 else None

    def group_left(self, e: Expr, loops: tuple[For, ...]) -> Expr | None:
        """The g for which `e` is the value of an index function that leads out of group g."""
        match e:
            case Index(fn, (arg,)) if "outside_group" in self.facts.get(fn, frozenset()):
                edges = fn.removesuffix("_child") + "_ptr"
                return self.group(arg, loops, edges if edges in self.facts else "group_start")
            case _:
                return None

    def determined(self, e: Expr, varying: frozenset[str], extents: Mapping[str, int]) -> frozenset[str]:
        """Those of the variables `varying` that have the same value whenever `e` has; `extents` are known ranges.

        o*16 + i determines o and i if i has at most 16 values; o*16 + i with i unlimited determines neither.
        """
        match e:
            case Index(fn, (arg,)):
                injective = "injective" in self.facts.get(fn, frozenset())
                return self.determined(arg, varying, extents) if injective else frozenset()
            case _:
                pass
        terms: list[tuple[int, str]] = []
        for monomial, c in expand(e, simplify).items():
            match monomial:
                case (Var(name),) if name in varying:
                    terms.append((abs(c), name))
                case _ if free_vars(monomial) & varying:
                    return frozenset()
                case _:
                    pass
        reach = 0  # how far apart the terms so far can be
        for number, (c, name) in enumerate(sorted(terms)):
            if c <= reach or (name not in extents and number < len(terms) - 1):
                return frozenset()
            reach += c * (extents.get(name, 1) - 1)
        return frozenset(name for _, name in terms)

    def aligned(self, x: Access, y: Access, var: str) -> bool:
        """Do `x` and `y` meet only within one iteration of `var`, if the loops around it are in one iteration?"""
        inner = frozenset(name for at in (x, y) for name in _inside(at.loops, var))
        return var in self._agreed(x, y, inner | {var})

    def loose(self, x: Access, y: Access, chain: tuple[str, ...]) -> tuple[str, ...]:
        """The loops of `chain` in different iterations of which `x` and `y` may meet, in the order of `chain`."""
        varying = frozenset(loop.var for at in (x, y) for loop in at.loops)
        while agreed := self._agreed(x, y, varying):
            varying -= agreed
        return tuple(v for v in chain if v in varying)

    def _agreed(self, x: Access, y: Access, varying: frozenset[str]) -> frozenset[str]:
        """The variables that have one value wherever `x` and `y` touch the same element."""
        extents = {
            loop.var: loop.hi.value - loop.lo.value
            for loop in (*x.loops, *y.loops)
            if isinstance(loop.lo, Int) and isinstance(loop.hi, Int)
        }
        agreed: frozenset[str] = frozenset()
        for a, b in zip(x.index, y.index, strict=True):
            if a == b and not any(isinstance(n, Load) for n in walk(a)):
                agreed |= self.determined(a, varying, extents)
        return agreed


def _loops(body: tuple[Stmt, ...]) -> Iterator[For]:
    """All loops of a statement list, without a look at its expressions."""
    lists = [body]
    while lists:
        for s in lists.pop():
            match s:
                case For(body=inner):
                    yield s
                    lists.append(inner)
                case If(then=then, orelse=orelse):
                    lists += (then, orelse)
                case Switch(cases=cases):
                    lists += (case.body for case in cases)
                case _:
                    pass


def _inside(loops: tuple[For, ...], var: str) -> list[str]:
    """Names of the loops inside the loop `var`."""
    names = [loop.var for loop in loops]
    return names[names.index(var) + 1 :]
