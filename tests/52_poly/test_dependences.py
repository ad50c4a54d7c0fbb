"""Pairs of runs that touch one element equal those found by running the loops; facts rule out what isl cannot."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import islpy as isl
import pytest

from cortex.ilir.ir import For, Func, IndexFunction, Store
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Float, Index, Int, Load, Var
from cortex.poly import dependences
from cortex.poly.accesses import Access, accesses
from cortex.poly.conflict import Conflict
from cortex.poly.dependences import Dependences
from cortex.poly.legal import why_not_any_order, why_not_reorder
from cortex.poly.order import ANY, Order, both, different, earlier, later

sys.path.insert(0, str(Path(__file__).parent))
from poly_evaluate import evaluate
from poly_programs import add, loop, matmul, program, stencil, subject, triangle, v

Run = tuple[int, ...]


def runs(a: Access, values: dict[str, int] | None = None, depth: int = 0) -> Iterator[tuple[Run, Run]]:
    """The iterations in which an access is made, each with its element."""
    values = values or {}
    if depth < len(a.loops):
        outer = a.loops[depth]
        for value in range(evaluate(outer.lo, values, {}), evaluate(outer.hi, values, {})):
            yield from runs(a, {**values, outer.var: value}, depth + 1)
    elif all(evaluate(c, values, {}) for c in a.conditions):
        yield tuple(values.values()), tuple(evaluate(i, values, {}) for i in a.index)


def pairs_of(relation: isl.Map, split: int, width: int) -> set[tuple[Run, Run]]:
    """The pairs of runs of an isl relation, one by one."""
    found: set[tuple[Run, Run]] = set()

    def note(p: isl.Point) -> None:
        at = tuple(p.get_coordinate_val(isl.dim_type.set, i).to_python() for i in range(width))
        found.add((at[:split], at[split:]))

    relation.wrap().foreach_point(note)
    return found


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
    exact, compared = Dependences(f, ""), 0
    for x in accesses(f.body):
        for y in accesses(f.body):
            if x.buffer != y.buffer:
                continue
            found = exact.meeting(x, y, ANY)
            assert found.exact
            wanted = {(s, t) for s, element in runs(x) for t, other in runs(y) if element == other}
            assert pairs_of(found.relation, len(x.loops), len(x.loops) + len(y.loops)) == wanted
            compared += len(wanted)
    assert compared > 20


def test_orders_are_what_they_say() -> None:
    """Each case of an order, evaluated on all pairs of points, against comparing tuples."""
    points = [(i, j) for i in range(3) for j in range(3)]
    signs = {"<": lambda x, y: x < y, "=": lambda x, y: x == y, ">": lambda x, y: x > y}

    def holds(order: Order, s: Run, t: Run) -> bool:
        at = {"i": 0, "j": 1}
        return any(all(signs[sign](s[at[loop]], t[at[loop]]) for loop, sign in case) for case in order)

    names = ("i", "j")
    for s in points:
        for t in points:
            assert holds(earlier(names), s, t) == (s < t)
            assert holds(later(names), s, t) == (s > t)
            assert holds(different(names), s, t) == (s != t)
            turned = both(earlier(names), later(("j", "i")))
            assert holds(turned, s, t) == (s < t and s[::-1] > t[::-1])


def chain(f: Func, *names: str) -> tuple[For, ...]:
    found = {n.var: n for n in walk(f) if isinstance(n, For)}
    return tuple(found[name] for name in names)


def any_order(f: Func, name: str) -> Conflict | None:
    return why_not_any_order(f, chain(f, name))


def reorder(f: Func, old: tuple[str, ...], new: tuple[str, ...]) -> Conflict | None:
    nest = chain(f, *old)
    return why_not_reorder(f, nest, new, (), nest[-1].body)


def test_loops_of_a_product() -> None:
    f = matmul()
    assert any_order(f, "i") is any_order(f, "j") is None
    found = any_order(f, "k")
    assert found is not None
    assert str(found) == "write of C[i, j] and write of C[i, j] may touch one element at distance (k: +1 or more)"


def test_orders_of_a_stencil() -> None:
    f = stencil()
    assert reorder(f, ("t", "x"), ("t", "x")) is None
    found = reorder(f, ("t", "x"), ("x", "t"))
    assert found is not None
    assert dict(found.distance) == {"t": "+1 or more", "x": "-1"}


def test_a_temporary_that_is_written_anew_is_carried_all_the_same() -> None:
    found = any_order(reuse(), "c")
    assert found is not None
    assert found.first.buffer == "t"


def scatter(*facts: str) -> Func:
    """y[p(i)] = 1; y[p(i + 4)] = 2 for all i below 4."""
    body = tuple(Store("y", (Index("p", (add(v("i"), k),)),), Float(1.0)) for k in (0, 4))
    f = program(loop("i", 0, 4, *body), y=(9,))
    function = IndexFunction("p", Int(9), ("non_negative", *facts), Int(9))  # type: ignore[arg-type]
    return Func(f.name, (), (function,), f.buffers, f.body)


def test_an_index_function_is_as_good_as_its_facts() -> None:
    assert any_order(scatter(), "i") is not None
    assert any_order(scatter("injective"), "i") is None


def test_loops_of_a_recursive_model() -> None:
    """Groups wait for the groups of their children, by the states alone; the nodes of a group are independent."""
    f = subject("dag_rnn").funcs["lowered"]
    found = any_order(f, "g")
    assert found is not None
    assert found.first.buffer == "state_h"
    rows = [n.var for n in walk(f) if isinstance(n, For) and n.var.endswith(("_n", "_i", "_j0"))]
    assert len(rows) > 10
    assert [name for name in rows if any_order(f, name)] == []
    edges = any_order(f, "inner_t4_e")
    assert edges is not None
    assert edges.first.buffer == "inner_t4"


def test_a_child_in_the_same_group_would_be_carried() -> None:
    f = subject("tree_rnn").funcs["lowered"]
    told = replace(f, body=(copy_of_the_left_child(),))
    untold = replace(told, promises=(), index_functions=tuple(replace(i, facts=()) for i in f.index_functions))
    assert any_order(told, "n") is None
    assert any_order(untold, "n") is not None


def copy_of_the_left_child() -> For:
    """For each group: for each of its nodes: the state of the node from that of its left child."""
    g, n = Var("g"), Var("n")
    start = Index("group_start", (g,))
    state = Store("state_h", (n, Int(0)), Load("state_h", (Index("child_left", (n,)), Int(0))))
    inside = For("n", start, Binary("add", start, Index("group_len", (g,))), (state,))
    return For("g", Int(0), Var("num_groups"), (inside,))


def test_promises_say_what_the_form_does_not() -> None:
    """Without the fact that the quick rules know a child by, the promises of the linear form keep it apart."""
    f = subject("tree_rnn").funcs["lowered"]
    functions = tuple(replace(i, facts=tuple(x for x in i.facts if x != "outside_group")) for i in f.index_functions)
    told = replace(f, body=(copy_of_the_left_child(),), index_functions=functions)
    assert any_order(told, "n") is None
    assert any_order(replace(told, promises=()), "n") is not None


def test_out_of_budget_is_not_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    f = scatter("injective")
    monkeypatch.setattr(dependences, "OPERATIONS", 1)
    assert any_order(f, "i") is None  # isl gave up, the prover did not
    monkeypatch.setattr(dependences, "Prover", lambda f: NeverSure())
    found = any_order(f, "i")
    assert found is not None
    assert found.distance == ()


class NeverSure:
    """A prover that is always out of budget."""

    def disjoint(self, *question: object) -> bool:
        return False
