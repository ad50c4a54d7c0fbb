"""Dependences equal those found by running the loops; loops of recursive programs carry what they should."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import islpy as isl
import pytest

from cortex.errors import InternalError
from cortex.ilir.ir import Accumulate, For, Func, If, IndexFunction, Stmt, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Float, Index, Int, Load, Var
from cortex.poly.dependences import Dependence, carried, dependences, reversed_by
from cortex.poly.evaluate import evaluate
from cortex.poly.prove import Prover

sys.path.insert(0, str(Path(__file__).parent))
from poly_programs import add, loop, matmul, program, stencil, subject, triangle, v

Run = tuple[str, tuple[int, ...]]
Event = tuple[Run, str, tuple[str, tuple[int, ...]]]  # who, "read" or "write", element


def events(body: tuple[Stmt, ...], values: dict[str, int], names: dict[int, str]) -> Iterator[Event]:
    """What a program of loops, conditions, stores and accumulations touches, in order."""
    for s in body:
        match s:
            case For(var, lo, hi, inner):
                for value in range(evaluate(lo, values, {}), evaluate(hi, values, {})):
                    yield from events(inner, {**values, var: value}, names)
            case If(cond, then, orelse):
                yield from events(then if evaluate(cond, values, {}) else orelse, values, names)
            case Store(buffer, index, value) | Accumulate(buffer, index, _, value):
                me = (names.setdefault(id(s), f"S{len(names)}"), tuple(values.values()))
                for n in walk(value):
                    if isinstance(n, Load):
                        yield me, "read", (n.buffer, tuple(evaluate(i, values, {}) for i in n.index))
                element = (buffer, tuple(evaluate(i, values, {}) for i in index))
                if isinstance(s, Accumulate):
                    yield me, "read", element
                yield me, "write", element


def brute_force(f: Func) -> dict[str, set[tuple[Run, Run]]]:
    """Flow and output dependences from the last write, anti dependences from every read before a write."""
    names: dict[int, str] = {}
    for n in walk(f):
        if isinstance(n, Store | Accumulate):
            names.setdefault(id(n), f"S{len(names)}")
    last: dict[object, Run] = {}
    reads: dict[object, list[Run]] = {}
    found: dict[str, set[tuple[Run, Run]]] = {"flow": set(), "anti": set(), "output": set()}
    for me, what, element in events(f.body, {}, names):
        if what == "read":
            if element in last:
                found["flow"].add((last[element], me))
            reads.setdefault(element, []).append(me)
        else:
            if element in last:
                found["output"].add((last[element], me))
            found["anti"] |= {(other, me) for other in reads.get(element, []) if other != me}
            last[element] = me
    return found


def pairs(found: list[Dependence]) -> dict[str, set[tuple[Run, Run]]]:
    """The pairs of runs of isl relations, one by one."""
    every: dict[str, set[tuple[Run, Run]]] = {"flow": set(), "anti": set(), "output": set()}
    for d in found:
        wrapped, split = d.relation.wrap(), len(d.source.loops)

        def note(p: isl.Point, d: Dependence = d, split: int = split) -> None:
            width = split + len(d.sink.loops)
            at = tuple(p.get_coordinate_val(isl.dim_type.set, i).to_python() for i in range(width))
            every[d.kind].add(((d.source.name, at[:split]), (d.sink.name, at[split:])))

        wrapped.foreach_point(note)
    return every


def reuse() -> Func:
    """A temporary that every iteration writes anew before it reads it, and a copy of the row above."""
    return program(
        loop("r", 1, 4, loop("c", 0, 3,
             Store("t", (Int(0),), Load("m", (add(v("r"), -1), v("c")))),
             Store("m", (v("r"), v("c")), Load("t", (Int(0),))))),
        t=(1,), m=(4, 3),
    )  # fmt: skip


@pytest.mark.parametrize("make", [matmul, stencil, triangle, reuse])
def test_equal_to_brute_force(make: Callable[[], Func]) -> None:
    f = make()
    found = dependences(f)
    assert all(d.exact for d in found)
    assert pairs(found) == brute_force(f)


def kinds(found: list[Dependence]) -> set[tuple[str, str]]:
    return {(d.kind, d.buffer) for d in found}


def test_loops_of_a_product() -> None:
    f = matmul()
    assert carried(f, "i") == carried(f, "j") == []
    assert kinds(carried(f, "k")) == {("flow", "C"), ("anti", "C"), ("output", "C")}


def test_orders_of_a_product() -> None:
    """The start value and the sum are in one list, so only the outer loops are a nest."""
    assert reversed_by(matmul(), ("j", "i")) == []


def test_a_loop_that_does_not_exist_is_not_legal() -> None:
    with pytest.raises(InternalError, match="no loop 'q'"):
        carried(matmul(), "q")
    with pytest.raises(InternalError, match="does not have the loops"):
        reversed_by(matmul(), ("q", "i"))


def test_what_is_not_a_nest_has_no_other_order() -> None:
    assert kinds(reversed_by(matmul(), ("k", "j"))) >= {("flow", "C")}


def test_orders_of_a_stencil() -> None:
    f = stencil()
    assert reversed_by(f, ("t", "x")) == []
    assert kinds(reversed_by(f, ("x", "t"))) == {("flow", "u"), ("anti", "u")}


def test_a_temporary_is_carried_and_its_value_is_not() -> None:
    assert kinds(carried(reuse(), "c")) == {("anti", "t"), ("output", "t")}
    assert ("flow", "m") in kinds(carried(reuse(), "r"))


def scatter(*facts: str) -> Func:
    """y[p(i)] = 1 for all i."""
    f = program(loop("i", 0, 9, Store("y", (Index("p", (v("i"),)),), Float(1.0))), y=(9,))
    function = IndexFunction("p", Int(9), ("non_negative", *facts), Int(9))  # type: ignore[arg-type]
    return Func(f.name, (), (function,), f.buffers, f.body)


def test_an_index_function_is_as_good_as_its_facts() -> None:
    (found,) = carried(scatter(), "i")
    assert (found.kind, found.exact) == ("output", False)
    assert carried(scatter("injective"), "i") == []


def test_loops_of_a_recursive_model() -> None:
    """Groups wait for the groups of their children, by the states alone; the nodes of a group are independent."""
    f = subject("dag_rnn").funcs["lowered"]
    prover = Prover(f)
    assert kinds(carried(f, "g", prover)) == {("flow", "state_h")}
    rows = [n.var for n in walk(f) if isinstance(n, For) and n.var.endswith(("_n", "_i", "_j0"))]
    assert len(rows) > 10
    assert [name for name in rows if carried(f, name, prover)] == []
    assert kinds(carried(f, "inner_t4_e", prover)) == {(kind, "inner_t4") for kind in ("flow", "anti", "output")}


def test_a_child_in_the_same_group_would_be_carried() -> None:
    f = subject("tree_rnn").funcs["lowered"]
    told = replace(f, body=(copy_of_the_left_child(),))
    assert carried(told, "n") == []
    assert ("flow", "state_h") in kinds(carried(replace(told, promises=()), "n"))


def copy_of_the_left_child() -> For:
    """For each group: for each of its nodes: the state of the node from that of its left child."""
    g, n = Var("g"), Var("n")
    start = Index("group_start", (g,))
    state = Store("state_h", (n, Int(0)), Load("state_h", (Index("child_left", (n,)), Int(0))))
    inside = For("n", start, Binary("add", start, Index("group_len", (g,))), (state,))
    return For("g", Int(0), Var("num_groups"), (inside,))
