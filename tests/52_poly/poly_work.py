"""What a program does for given sizes and index arrays, counted without running it.

The counts equal those of the interpreter. A loop that nothing inside depends on multiplies; a loop whose variable
bounds affine loops or decides affine conditions inside is counted by isl; only a loop whose variable reaches an
index function that decides control (the groups, a node's edges) is gone through value by value.

    for g in 0..num_groups: for n in group_start(g)..: for j in 0..256: S      groups one by one, then len * 256
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import islpy as isl
from poly_evaluate import Arrays, evaluate

from cortex.ilir.count import Counts, count_list
from cortex.ilir.ir import Barrier, For, Func, If, Let, Stmt, Switch
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, dtype_of
from cortex.ir.simplify import free_vars
from cortex.poly.counting import count
from cortex.poly.domains import Vocabulary, runs
from cortex.poly.points import Point, branches, points_of

Block = tuple[Stmt, ...]


def work(f: Func, sizes: Mapping[str, int], arrays: Arrays) -> Counts:
    """Operations and elements moved by one call of `f`."""
    counter = _Counter(f, arrays)
    counter.block(f.body, dict(sizes), 1)
    return counter.counts


def fix(speak: Vocabulary, s: isl.Set, value: Callable[[Expr], int]) -> isl.Set:
    """`s` with every parameter given its value."""
    names = {name: e for e, name in speak.parameters.items()}
    while s.dim(isl.dim_type.param):
        name = s.get_dim_name(isl.dim_type.param, 0)
        assert name is not None
        s = s.fix_val(isl.dim_type.param, 0, isl.Val(value(names[name])))
        s = s.project_out(isl.dim_type.param, 0, 1)
    return s


class _Counter:
    def __init__(self, f: Func, arrays: Arrays) -> None:
        self.f, self.arrays = f, {name: list(map(int, values)) for name, values in arrays.items()}
        self.counts = Counts()
        self.one_run: dict[int, Counts] = {}
        self.deciding: dict[int, frozenset[str]] = {}
        self.shapes: dict[int, list[tuple[Block, isl.Set]] | None] = {}
        self.speak = Vocabulary(f)

    def block(self, body: Block, values: dict[str, int], times: int) -> None:
        """Count `times` runs of a statement list with the same values of the variables that matter."""
        self.add(body, times)
        if times == 0:
            return
        for s in body:
            match s:
                case Let(var, value) if dtype_of(value) == "i64" and free_vars(value) <= set(values):
                    values = {**values, var.name: self.value(value, values)}
                case For():
                    self.loop(s, values, times)
                case If(cond, then, orelse):
                    self.block(then if self.value(cond, values) else orelse, values, times)
                case Switch(value, cases):
                    chosen = self.value(value, values)
                    for case in cases:
                        if case.value == chosen:
                            self.block(case.body, values, times)
                case _:
                    pass

    def loop(self, s: For, values: dict[str, int], times: int) -> None:
        lo, hi = self.value(s.lo, values), self.value(s.hi, values)
        if s.var not in self.decides(s):
            self.block(s.body, values, times * max(0, hi - lo))
            return
        pieces = self.affine_lists(s)
        if pieces is None:
            for value in range(lo, hi):
                self.block(s.body, {**values, s.var: value}, times)
            return
        for body, domain in pieces:
            self.add(body, times * count(fix(self.speak, domain, lambda e: self.value(e, values))))

    def add(self, body: Block, times: int) -> None:
        if id(body) not in self.one_run:
            self.one_run[id(body)] = count_list(body)
        self.counts.add(self.one_run[id(body)], times)

    def value(self, e: Expr, values: Mapping[str, int]) -> int:
        return evaluate(e, values, self.arrays)

    def decides(self, s: Stmt) -> frozenset[str]:
        """The variables that decide how often the lists inside a statement run, through lets too."""
        if id(s) not in self.deciding:
            inside = [n for n in walk(s) if isinstance(n, For | If | Switch) and n is not s]
            names = set(free_vars(tuple(e for n in inside for e in _control(n))))
            for let in reversed([n for n in walk(s) if isinstance(n, Let)]):
                if let.var.name in names:
                    names |= free_vars(let.value)
            self.deciding[id(s)] = frozenset(names)
        return self.deciding[id(s)]

    def affine_lists(self, s: For) -> list[tuple[Block, isl.Set]] | None:
        """The lists inside a loop with the sets of their runs; None when one of the sets is not exact."""
        if id(s) not in self.shapes:
            self.shapes[id(s)] = self.find_affine_lists(s)
        return self.shapes[id(s)]

    def find_affine_lists(self, s: For) -> list[tuple[Block, isl.Set]] | None:
        found: list[tuple[Block, isl.Set]] = []
        for body, point in _lists(s):
            domain, exact = runs(self.speak, "L", point, point.loops)
            if not exact:
                return None
            found.append((body, domain))
        return found


def _control(n: For | If | Switch) -> tuple[Expr, ...]:
    match n:
        case For(_, lo, hi):
            return lo, hi
        case If(cond):
            return (cond,)
        case Switch(value):
            return (value,)


def _lists(s: For) -> Iterator[tuple[Block, Point]]:
    """The statement lists inside a loop, each with the loops and conditions it runs under."""
    for point in points_of((s,)):
        here = replace(point, stmt=Barrier())
        match point.stmt:
            case For(body=body) as loop:
                yield body, replace(here, loops=(*here.loops, loop))
            case If() | Switch() as branch:
                for body, condition in branches(branch):
                    yield body, replace(here, conditions=(*here.conditions, condition))
            case _:
                pass
