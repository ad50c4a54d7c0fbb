"""Dependences between the runs of statements, and what they say about loops.

    for i in 0..n: A[i] = B[i]; for i in 1..n: C[i] = A[i - 1]

    flow    { S0[i] -> S1[i + 1] }      the write whose value a read sees: the last one before it
    anti    a read, and a later write of the element
    output  two writes of one element, one right after the other

With affine indices the relations are exact. Where an index function is involved isl knows only its range; then the
relation holds more pairs than there are, `exact` is False, and queries about loops ask the prover to rule the pair
out from the declared facts: a child lies outside its parent's group, `kind_node` takes no value twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import islpy as isl

from cortex.errors import InternalError
from cortex.ilir.ir import For, Func
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Unary, Var
from cortex.ir.simplify import substitute
from cortex.poly.accesses import Access, accesses
from cortex.poly.domains import Statement, Vocabulary, statements
from cortex.poly.facts import conjunction
from cortex.poly.points import lt
from cortex.poly.prove import Prover

Kind = Literal["flow", "anti", "output"]

OTHER = " in the other run"  # what variables of the second of two runs are called; no name of a program has spaces


@dataclass(frozen=True, eq=False)
class Dependence:
    """Pairs of runs, `source` before `sink`, that touch one element of `buffer`, a write among them."""

    kind: Kind
    source: Statement
    sink: Statement
    buffer: str
    relation: isl.Map
    exact: bool


def dependences(f: Func, under: str | None = None) -> list[Dependence]:
    """All dependences of `f`; with `under`, those within one run of the loops around the loop `under`."""
    return [d for _, d in _dependences(f, under)]


def carried(f: Func, loop: str, prover: Prover | None = None) -> list[Dependence]:
    """The dependences from one iteration of a loop to a later one of the same run of the loop.

    Empty: the iterations may run in any order, or at once.
    """
    asked = prover or Prover(f)
    found = []
    for pairs, d in _dependences(f, loop):
        relation = d.relation.intersect(_map(d, f"s{loop_dim(d, loop)} < t{loop_dim(d, loop)}"))
        if not relation.is_empty() and not _ruled_out(asked, pairs, d, _earlier(loop)):
            found.append(Dependence(d.kind, d.source, d.sink, d.buffer, relation, d.exact))
    return found


def reversed_by(f: Func, order: Sequence[str], prover: Prover | None = None) -> list[Dependence]:
    """The dependences that nesting some loops in another order would turn around; empty means the order is legal.

    `order` names the loops of a nest, each around the next in the program, in the order they are to have.
    """
    asked = prover or Prover(f)
    outermost = _outermost(f, order)
    found = []
    for pairs, d in _dependences(f, outermost):
        if not {*order} <= {loop.var for loop in d.source.loops} & {loop.var for loop in d.sink.loops}:
            found.append(d)  # not a nest: one end is not inside all of the loops, so the new order is not even defined
            continue
        dims = [loop_dim(d, loop) for loop in order]
        later = [" and ".join([*(f"s{x} = t{x}" for x in dims[:i]), f"s{dim} > t{dim}"]) for i, dim in enumerate(dims)]
        relation = d.relation.intersect(_map(d, " or ".join(f"({x})" for x in later)))
        if not relation.is_empty() and not _ruled_out(asked, pairs, d, _different(order)):
            found.append(Dependence(d.kind, d.source, d.sink, d.buffer, relation, d.exact))
    return found


def loop_dim(d: Dependence, loop: str) -> int:
    """Which dimension of both ends of a dependence a loop around both is."""
    return [each.var for each in d.source.loops].index(loop)


def _outermost(f: Func, order: Sequence[str]) -> str:
    """The loop of `order` that is around the others."""
    loops = [s.var for s in walk(f) if isinstance(s, For) and s.var in order]
    if sorted(loops) != sorted(order):
        raise InternalError(f"{f.name!r} does not have the loops {', '.join(order)}")
    return loops[0]


def _dependences(f: Func, under: str | None) -> Iterator[tuple[list[tuple[Access, Access]], Dependence]]:
    """Dependences with the pairs of accesses that may cause them."""
    speak = Vocabulary(f)
    found = statements(speak, under)
    by_buffer: dict[str, list[Access]] = {}
    for s in found:
        for a in accesses(speak, s):
            by_buffer.setdefault(a.buffer, []).append(a)
    times = _times(found)
    ends = {s.name: s for s in found}
    for buffer, touching in by_buffer.items():
        writes = [a for a in touching if a.writes]
        reads = [a for a in touching if not a.writes]
        ways: tuple[tuple[Kind, list[Access], list[Access]], ...] = (
            ("flow", writes, reads), ("anti", reads, writes), ("output", writes, writes),
        )  # fmt: skip
        for kind, sources, sinks in ways:
            if not sources or not sinks:
                continue
            for relation in _flow(kind, sources, sinks, times):
                source = ends[relation.get_tuple_name(isl.dim_type.in_)]
                sink = ends[relation.get_tuple_name(isl.dim_type.out)]
                pairs = [(a, b) for a in sources for b in sinks if a.statement is source and b.statement is sink]
                exact = all(a.exact and b.exact for a, b in pairs)
                yield pairs, Dependence(kind, source, sink, buffer, relation, exact)


def _flow(kind: Kind, sources: list[Access], sinks: list[Access], times: isl.UnionMap) -> list[isl.Map]:
    """For every run of a sink the sources before it: the last one where that is certain.

    An exact write hides the writes before it. A read hides nothing, and neither does a write that is not certain.
    """
    info = isl.UnionAccessInfo.from_sink(_union(sinks)).set_schedule_map(times)
    certain = [a for a in sources if a.exact and kind != "anti"]
    possible = [a for a in sources if not a.exact or kind == "anti"]
    if certain:
        info = info.set_must_source(_union(certain))
    if possible:
        info = info.set_may_source(_union(possible))
    flow = info.compute_flow().get_may_dependence()
    maps = flow.get_map_list()
    return [maps.get_at(i) for i in range(maps.n_map())]


def _union(parts: list[Access]) -> isl.UnionMap:
    whole = isl.UnionMap.from_map(parts[0].relation)
    for a in parts[1:]:
        whole = whole.union(isl.UnionMap.from_map(a.relation))
    return whole


def _times(found: list[Statement]) -> isl.UnionMap:
    """When each run happens: places in the text and loop variables in turn, outermost first.

    Places between two loops are one number each: the order of the statements' texts.
    """
    depth = max((len(s.loops) for s in found), default=0)
    whole = isl.UnionMap("{}")
    for s in found:
        dims = [f"i{d}" for d in range(len(s.loops))]
        places = [str(_place(found, s, d)) for d in range(len(s.loops) + 1)]
        when = [x for pair in zip(places, [*dims, ""], strict=True) for x in pair if x]
        when += ["0"] * (2 * depth + 1 - len(when))
        whole = whole.union(isl.UnionMap(f"{{ {s.name}[{', '.join(dims)}] -> [{', '.join(when)}] }}"))
    return whole


def _place(found: list[Statement], s: Statement, depth: int) -> int:
    """The number of the first statement that shares with `s` its first `depth` loops and what holds it there."""
    if depth == len(s.loops):
        return found.index(s)
    mine = [loop.var for loop in s.loops[: depth + 1]]
    return next(i for i, other in enumerate(found) if [loop.var for loop in other.loops[: depth + 1]] == mine)


def _map(d: Dependence, formula: str) -> isl.Map:
    ins = ", ".join(f"s{i}" for i in range(len(d.source.loops)))
    outs = ", ".join(f"t{i}" for i in range(len(d.sink.loops)))
    return isl.Map(f"{{ {d.source.name}[{ins}] -> {d.sink.name}[{outs}] : {formula} }}")


def _earlier(loop: str) -> Expr:
    """The first of two runs is in an earlier iteration of `loop`."""
    return lt(Var(loop), Var(loop + OTHER))


def _different(loops: Sequence[str]) -> Expr:
    """Two runs are in different iterations of some of `loops`."""
    return Unary("not", conjunction(Binary("eq", Var(loop), Var(loop + OTHER)) for loop in loops))


def _ruled_out(prover: Prover, pairs: list[tuple[Access, Access]], d: Dependence, runs: Expr) -> bool:
    """Do the declared facts keep all pairs of accesses apart, in two runs that are as `runs` says?"""
    return not d.exact and all(_apart(prover, a, b, runs) for a, b in pairs)


def _apart(prover: Prover, a: Access, b: Access, runs: Expr) -> bool:
    inside = [*(loop.var for loop in b.statement.loops), *(let.var.name for let in b.statement.point.lets)]
    other: dict[str, Expr] = {name: Var(name + OTHER) for name in inside}
    given = (*a.statement.point.given, *(substitute(e, other) for e in b.statement.point.given), runs)
    return prover.disjoint(a.index, tuple(substitute(e, other) for e in b.index), given)
