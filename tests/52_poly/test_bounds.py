"""Every access of every zoo model is proven; a broken program is caught, with values under which it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from breadth import some

from cortex import zoo
from cortex.ilir.ir import Buffer, For, Func, If, IndexFunction, Scope, Store
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Float, Index, Int, Load, Var
from cortex.ir.simplify import FALSE
from cortex.poly.bounds import Finding, in_bounds
from cortex.poly.prove import Prover
from cortex.poly.sites import sites

sys.path.insert(0, str(Path(__file__).parent))
from poly_programs import subject


def unproven(f: Func, *, padding: bool = True) -> list[Finding]:
    return [x for x in in_bounds(f, padding=padding) if not x.proven]


# Later stages take longer, so a few models stand for all: those whose loops the others have too.
STAGES = [(name, "lowered") for name in zoo.ENTRIES]
STAGES += [(name, "scheduled") for name in some(zoo.ENTRIES, ["tree_rnn", "tree_fc"])]
STAGES += [
    (name, "passes") for name in some(zoo.ENTRIES, ["tree_lstm", "tree_gru", "mv_rnn", "rntn", "dag_rnn", "lstm"])
]


@pytest.mark.parametrize(("name", "stage"), STAGES)
def test_every_access_of_the_zoo_is_proven(name: str, stage: str) -> None:
    f = subject(name, 20).funcs[stage]
    found = in_bounds(f, padding=stage != "lowered")
    assert len(found) > 10
    assert [str(x) for x in found if not x.proven] == []


@pytest.mark.parametrize("name", ["tree_rnn", "tree_lstm", "lstm"])
def test_what_is_known_is_not_contradictory(name: str) -> None:
    """Were it so, everything would be proven."""
    f = subject(name, 20).funcs["lowered"]
    prover = Prover(f)
    for given in {site.given for site in sites(f)}:
        assert prover.ask(given, FALSE).outcome == "refuted"


def broken(name: str, change: Callable[[Node], Node | tuple[Node, ...]]) -> Func:
    """A lowered zoo model after a mistake."""
    f = subject(name, 20).funcs["lowered"]
    return replace(f, body=tuple(rewrite(s, change) for s in f.body))


def plus_one(e: Node) -> Binary:
    return Binary("add", e, Int(1))  # type: ignore[arg-type]


def test_child_off_by_one() -> None:
    f = broken("tree_rnn", lambda n: plus_one(n) if isinstance(n, Index) and n.fn == "child_left" else n)
    (finding,) = unproven(f)
    assert (finding.outcome, finding.site.way, finding.site.array) == ("refuted", "load", "state_h")
    values = finding.counterexample
    assert values["child_left(inner_t1_n)"] + 1 == values["num_nodes"] <= 3
    assert "fails at" in str(finding)


def test_row_off_by_one() -> None:
    def change(n: Node) -> Node:
        return replace(n, index=(plus_one(n.index[0]), *n.index[1:])) if isinstance(n, Store) else n

    found = unproven(broken("tree_lstm", change))
    assert {x.outcome for x in found} == {"refuted"}
    assert {x.site.way for x in found} == {"store"}
    assert "state_h" in {x.site.array for x in found}


def test_column_off_by_one_is_seen_despite_the_padding_of_rows() -> None:
    def change(n: Node) -> Node:
        return replace(n, index=(*n.index[:-1], plus_one(n.index[-1]))) if isinstance(n, Load) else n

    f = broken("tree_rnn", change)
    assert unproven(f, padding=False)
    assert not [x for x in unproven(f) if x.site.array == "state_h"]


def test_loop_one_too_long() -> None:
    f = broken("dag_rnn", lambda n: replace(n, hi=plus_one(n.hi)) if isinstance(n, For) and n.var.endswith("_n") else n)
    (first, *_) = unproven(f)
    assert first.outcome == "refuted"


def test_what_turns_a_loop_is_evaluated_too() -> None:
    index = (IndexFunction("start", Var("num_groups")),)
    for place, wrong in (Var("g"), []), (plus_one(Var("g")), ["start"]):
        inner = For("n", Int(0), Int(4), (), turned=Index("start", (place,)))
        f = Func("f", ("num_groups",), index, (), (For("g", Int(0), Var("num_groups"), (inner,)),))
        assert [x.site.array for x in unproven(f)] == wrong


def test_edge_off_by_one() -> None:
    f = broken("dag_rnn", lambda n: replace(n, hi=plus_one(n.hi)) if isinstance(n, For) and n.var.endswith("_e") else n)
    assert [x.site.array for x in unproven(f)] == ["state_h", "children_child"]


def test_wrong_extent() -> None:
    f = subject("mv_rnn", 20).funcs["scheduled"]
    small = tuple(
        replace(b, shape=(Binary("sub", b.shape[0], Int(1)), *b.shape[1:])) if b.shape[0] == Var("max_group") else b
        for b in f.buffers
    )
    assert small != f.buffers
    assert {x.outcome for x in unproven(replace(f, buffers=small))} == {"refuted"}


def test_a_child_that_may_be_missing_needs_a_guard() -> None:
    f = broken("tree_rnn", lambda n: n.then if isinstance(n, If) else n)
    found = unproven(f)
    assert [x.site.array for x in found] == ["state_h", "state_h"]
    assert found[0].counterexample["child_left(inner_t1_n)"] == -1


def test_a_guard_on_the_child_itself_is_enough() -> None:
    n = Var("n")
    child = Index("child", (n,))
    store = Store("h", (n,), Load("h", (child,)))
    index = IndexFunction("child", Var("num_nodes"), ("below",), Var("num_nodes"))
    buffer = Buffer("h", "f32", (Var("num_nodes"),), Scope.STATE)
    guarded = If(Binary("ge", child, Int(0)), (store,), (Store("h", (n,), Float(0.0)),))
    for body, wrong in (guarded, []), (store, ["h"]):
        f = Func("f", ("num_nodes",), (index,), (buffer,), (For("n", Int(0), Var("num_nodes"), (body,)),))
        assert [x.site.array for x in unproven(f)] == wrong


def test_a_broken_packing_is_found() -> None:
    f = subject("mv_rnn", 20).funcs["scheduled"]
    deeper = tuple(replace(p, depth=p.depth + 1) for p in f.packings)
    found = unproven(replace(f, packings=deeper))
    assert {x.site.way for x in found} == {"pack"}


def test_out_of_budget_is_not_proven() -> None:
    f = subject("mv_rnn", 20).funcs["scheduled"]
    found = in_bounds(f, prover=Prover(f, budget=1))
    assert "unknown" in {x.outcome for x in found}
    assert not any(x.proven for x in found if x.outcome == "unknown")
