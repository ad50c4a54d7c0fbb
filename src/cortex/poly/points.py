"""The points of a program's text: every statement, with all that holds where it stands.

    for n in 0..num_nodes: if child(n) >= 0: h[child(n), 3] = 0.0

    point   the store   given   0 <= n, n < num_nodes, child(n) >= 0

Loop variables are within their bounds, conditions on the way hold, a let equals its value. A loop, branch or
switch is itself a point, where its bounds or its condition are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from cortex.ilir.ir import Accumulate, Barrier, For, Func, If, Let, Mark, Prefetch, Stmt, Store, Switch
from cortex.ir.scalar import Binary, Expr, Int, Unary, Var, dtype_of


@dataclass(frozen=True)
class Point:
    """A statement, the loops around it, the conditions and the integer lets it stands under."""

    stmt: Stmt
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    lets: tuple[Let, ...]

    @property
    def given(self) -> tuple[Expr, ...]:
        """All that holds here, as boolean expressions."""
        bounds = (e for loop in self.loops for e in (le(loop.lo, Var(loop.var)), lt(Var(loop.var), loop.hi)))
        return (*bounds, *self.conditions, *(Binary("eq", let.var, let.value) for let in self.lets))

    @property
    def evaluates(self) -> tuple[Expr, ...]:
        """The expressions the statement itself evaluates, not those of the statements inside it."""
        s = self.stmt
        match s:
            case For(_, lo, hi, _, _, turned):
                return (lo, hi) if turned is None else (lo, hi, turned)
            case If(cond):
                return (cond,)
            case Switch(value) | Let(_, value):
                return (value,)
            case Store(_, index, value) | Accumulate(_, index, _, value):
                return (*index, value)
            case Mark(_, index) | Prefetch(_, index):
                return index
            case Barrier():
                return ()
            case _:
                assert_never(s)


OUTSIDE = Point(Barrier(), (), (), ())  # where nothing is known


def points(f: Func) -> Iterator[Point]:
    """All points of a function, in the order of its text."""
    return points_of(f.body)


def point_of(f: Func, loop: str) -> Point:
    """Where a loop stands; where nothing is known, if the function does not have it."""
    return next((p for p in points(f) if isinstance(p.stmt, For) and p.stmt.var == loop), OUTSIDE)


def branches(s: If | Switch) -> Iterator[tuple[tuple[Stmt, ...], Expr]]:
    """The arms of a branch, each with the condition under which it runs."""
    match s:
        case If(cond, then, orelse):
            yield then, cond
            yield orelse, Unary("not", cond)
        case Switch(value, cases):
            yield from ((case.body, Binary("eq", value, Int(case.value))) for case in cases)
        case _:
            assert_never(s)


def points_of(body: tuple[Stmt, ...], around: Point = OUTSIDE) -> Iterator[Point]:
    """The points of a statement list that stands at a point."""
    lets = around.lets
    for s in body:
        here = replace(around, stmt=s, lets=lets)
        yield here
        match s:
            case For(body=inner):
                yield from points_of(inner, replace(here, loops=(*here.loops, s)))
            case If() | Switch():
                for arm, condition in branches(s):
                    yield from points_of(arm, replace(here, conditions=(*here.conditions, condition)))
            case Let(_, value):
                if dtype_of(value) == "i64":
                    lets = (*lets, s)
            case Store() | Accumulate() | Barrier() | Mark() | Prefetch():
                pass
            case _:
                assert_never(s)


def le(x: Expr, y: Expr) -> Expr:
    """x <= y."""
    return Binary("le", x, y)


def lt(x: Expr, y: Expr) -> Expr:
    """x < y."""
    return Binary("lt", x, y)
