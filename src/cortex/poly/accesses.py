"""Access relations: for each statement, which elements its runs read and write, as isl maps.

    y[i] += A[i, j] * x[j]         reads  { S0[i, j] -> A[i, j] }, { S0[i, j] -> x[j] }, { S0[i, j] -> y[i] }
                                   writes { S0[i, j] -> y[i] }

An index that is not affine in the loops (`h[child(n), j]`) may be any element within its declared range: the map
then over-approximates, and is not `exact`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from cortex.ilir.ir import Accumulate, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Expr, Load
from cortex.poly.domains import Sayer, Statement, Vocabulary


@dataclass(frozen=True, eq=False)
class Access:
    """The elements of `buffer` that the runs of a statement read or write at one place of its text."""

    statement: Statement
    buffer: str
    index: tuple[Expr, ...]
    writes: bool
    relation: isl.Map
    exact: bool


def accesses(speak: Vocabulary, s: Statement) -> Iterator[Access]:
    """The accesses of a statement; an accumulation reads and writes its element."""
    for e in s.point.evaluates:
        for n in walk(e):
            if isinstance(n, Load):
                yield _access(speak, s, n.buffer, n.index, writes=False)
    match s.point.stmt:
        case Accumulate(buffer, index):
            yield _access(speak, s, buffer, index, writes=False)
            yield _access(speak, s, buffer, index, writes=True)
        case Store(buffer, index):
            yield _access(speak, s, buffer, index, writes=True)
        case _:
            pass


def _access(speak: Vocabulary, s: Statement, buffer: str, index: tuple[Expr, ...], *, writes: bool) -> Access:
    say = Sayer(speak, s.loops, s.point.lets)
    equal = [f"x{i} = {say.integer(e)}" for i, e in enumerate(index)]
    target = f"A[{', '.join(f'x{i}' for i in range(len(index)))}]"
    relation = isl.Map(say.text(s.name, target, equal)).intersect_domain(s.domain)
    return Access(s, buffer, index, writes, relation, s.exact and not say.unknowns)
