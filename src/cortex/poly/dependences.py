"""Dependences between two accesses, by isl and, where index functions are involved, by the prover.

    for i in 1..n: for j in 0..m: a[i, j] = a[i - 1, j + 1]

    write a[i, j], read a[i - 1, j + 1]     { S[i, j] -> T[i', j'] : i' = i + 1 and j' = j - 1 and ... }

The relation holds the pairs of runs that touch one element. With affine indices and bounds it is exact. Of an index
function isl knows only the range; the relation then holds more pairs than there are, and the prover is asked to rule
them out from the declared facts: a child lies outside its parent's group, `kind_node` takes no value twice.

What is not shown to be apart within the budgets of isl and of the prover is taken to meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import islpy as isl

from cortex.ilir.ir import Func
from cortex.ir.scalar import Binary, BinaryFn, Expr, Var
from cortex.ir.simplify import FALSE, substitute
from cortex.poly.accesses import Access
from cortex.poly.conflict import Conflict, Distance
from cortex.poly.domains import Sayer, Vocabulary
from cortex.poly.facts import conjunction
from cortex.poly.order import Case, Order
from cortex.poly.points import le, lt, point_of
from cortex.poly.prove import Prover

OPERATIONS = 200_000  # isl's own units of work for one pair; at most about 100 ms, usually 1, on every machine alike
OTHER = " in the other run"  # what variables of the second of two runs are called; no name of a program has spaces

_COMPARISONS: dict[str, BinaryFn] = {"<": "lt", "=": "eq", ">": "gt"}


@dataclass(frozen=True, eq=False)
class Meeting:
    """Pairs of runs that touch one element; `exact` if only affine forms of loops and sizes decide whether they do."""

    relation: isl.Map
    exact: bool


class Dependences:
    """Answers for accesses in a text that stands where the loop `at` of a function stands.

    What is around that loop is the same for both runs: its variables, and the index functions of them, are fixed.
    """

    def __init__(self, f: Func, at: str) -> None:
        self.f = f
        self.around = point_of(f, at)
        self.speak = Vocabulary(f)
        self.prover: Prover | None = None

    def conflict(self, x: Access, y: Access, order: Order) -> Conflict | None:
        """How `x` and `y` may touch one element in two runs that lie to each other as `order` says; None: never."""
        if not order:
            return None
        exact, distance = False, Distance()
        try:
            with _limited():
                found = self.meeting(x, y, order)
                if found.relation.is_empty():
                    return None
                exact, distance = found.exact, _distance(found.relation, x, y)
        except isl.Error:  # out of budget
            pass
        return None if not exact and self._ruled_out(x, y, order) else Conflict(x, y, distance)

    def meeting(self, x: Access, y: Access, order: Order) -> Meeting:
        """The pairs of runs of `x` and `y` that touch one element and lie to each other as `order` says."""
        first, first_exact = self._relation("S", x)
        second, second_exact = self._relation("T", y)
        relation = first.apply_range(second.reverse()).intersect(_union([self._case(x, y, case) for case in order]))
        return Meeting(relation, first_exact and second_exact)

    def _relation(self, name: str, a: Access) -> tuple[isl.Map, bool]:
        """The elements that the runs of an access touch, and whether it is known exactly which those are."""
        say = Sayer(self.speak, a.loops, self.around.lets)
        formulas = [f"x{i} = {say.integer(e)}" for i, e in enumerate(a.index)]
        for loop in a.loops:
            var = say.integer(Var(loop.var))
            formulas += [f"{say.integer(loop.lo)} <= {var}", f"{var} < {say.integer(loop.hi)}"]
        for loop in self.around.loops:
            formulas.append(say.condition(le(loop.lo, Var(loop.var))))
            formulas.append(say.condition(lt(Var(loop.var), loop.hi)))
        formulas += [say.condition(c) for c in (*self.around.conditions, *a.conditions)]
        sizes = {self.speak.parameters[Var(size)] for size in self.f.sizes}
        formulas += [f"{p} >= 0" for p in sorted(say.used & sizes)]
        target = f"A[{', '.join(f'x{i}' for i in range(len(a.index)))}]"
        return isl.Map(say.text(name, target, formulas)), not say.unknowns and say.used <= sizes

    def _case(self, x: Access, y: Access, case: Case) -> isl.Map:
        """All pairs of runs that lie to each other as `case` says."""
        depths = [{loop.var: depth for depth, loop in enumerate(a.loops)} for a in (x, y)]
        formulas = [f"s{depths[0][loop]} {sign} t{depths[1][loop]}" for loop, sign in case]
        ins = ", ".join(f"s{i}" for i in range(len(x.loops)))
        outs = ", ".join(f"t{i}" for i in range(len(y.loops)))
        return isl.Map(f"{{ S[{ins}] -> T[{outs}] : {' and '.join(formulas) or 'true'} }}")

    def _ruled_out(self, x: Access, y: Access, order: Order) -> bool:
        """Do the declared facts keep the accesses apart, in every case of `order`?"""
        self.prover = self.prover or Prover(self.f)
        other: dict[str, Expr] = {loop.var: Var(loop.var + OTHER) for loop in y.loops}
        given = (*self.around.given, *_given(x), *(substitute(e, other) for e in _given(y)))
        runs: Expr = FALSE
        for case in order:
            signs = conjunction(Binary(_COMPARISONS[s], Var(loop), Var(loop + OTHER)) for loop, s in case)
            runs = signs if runs == FALSE else Binary("or", runs, signs)
        return self.prover.disjoint(x.index, tuple(substitute(e, other) for e in y.index), (*given, runs))


def _given(a: Access) -> tuple[Expr, ...]:
    """What holds in every run of an access."""
    bounds = (e for loop in a.loops for e in (le(loop.lo, Var(loop.var)), lt(Var(loop.var), loop.hi)))
    return (*bounds, *a.conditions)


def _union(maps: list[isl.Map]) -> isl.Map:
    whole = maps[0]
    for m in maps[1:]:
        whole = whole.union(m)
    return whole


def _distance(relation: isl.Map, x: Access, y: Access) -> Distance:
    """For every loop around both accesses, how many iterations later the second run is."""
    shared = 0
    while shared < min(len(x.loops), len(y.loops)) and x.loops[shared].var == y.loops[shared].var:
        shared += 1
    for side, depth in ((isl.dim_type.in_, len(x.loops)), (isl.dim_type.out, len(y.loops))):
        relation = relation.project_out(side, shared, depth - shared).set_tuple_name(side, "R")
    deltas = relation.deltas()
    return tuple((loop.var, _span(deltas, depth)) for depth, loop in enumerate(x.loops[:shared]))


def _span(deltas: isl.Set, depth: int) -> str:
    low, high = deltas.dim_min_val(depth), deltas.dim_max_val(depth)
    if low.eq(high):
        return f"{low.get_num_si():+d}" if not low.is_zero() else "0"
    if low.is_pos():
        return f"{low.get_num_si():+d} or more"
    return f"{high.get_num_si():+d} or less" if high.is_neg() else "any"


@contextmanager
def _limited() -> Iterator[None]:
    """Give isl a budget; it raises when that is used up."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(OPERATIONS)
    try:
        yield
    finally:
        context.set_max_operations(0)
        context.reset_operations()
