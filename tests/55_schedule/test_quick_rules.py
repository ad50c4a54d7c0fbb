"""What the dependence tests must not claim, and what they must be able to tell."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cortex.errors import ScheduleError
from cortex.ilir.ir import Barrier, For, Func, If, Let, Stmt, Store
from cortex.ir.scalar import Binary, Float, Index, Int, Load, Var
from cortex.ir.step import apply
from cortex.poly.legal import why_not_any_order
from cortex.poly.quick import QuickRules
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.locate import find_loop
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.tile import Tile

sys.path.insert(0, str(Path(__file__).parent))
import programs

ROW, COLUMN, N = Var("i"), Var("j"), Var("num_nodes")


def without_condition() -> Func:
    """The cell with its nests directly in the loop over groups."""
    f = programs.cell()
    leaf, groups = f.body
    assert isinstance(groups, For)
    (arm,) = groups.body
    assert isinstance(arm, If)
    return replace(f, body=(leaf, replace(groups, body=arm.then)))


def program(*body: Stmt) -> Func:
    return replace(programs.cell(), body=body)


def test_groups_depend_on_groups_before() -> None:
    """A child is outside its parent's group, but it is inside another iteration of the loop over groups."""
    f = without_condition()
    groups = find_loop(f, "g", None)
    product, _, activation = groups.body
    met = QuickRules.of(f).conflicts((product,), (activation,), (groups,))
    assert {x.buffer for x, _ in met} == {"h"}
    assert QuickRules.of(f).commute(product, activation)  # in one group they do not meet
    with pytest.raises(ScheduleError, match="would run before earlier iterations of one after it"):
        Distribute("g").apply(f)


def test_a_group_is_not_confused_with_nodes_of_no_group() -> None:
    """A child of an arbitrary node may be in any group."""
    f = without_condition()
    reader = For("x", Int(0), N, (Store("u", (Var("x"), Int(0)), Load("h", (Index("child", (Var("x"),)), Int(0)))),))
    f = replace(f, body=(*f.body, reader))
    known = QuickRules.of(f)
    assert not known.commute(f.body[1], reader)
    inside = find_loop(f, "g", None).body
    assert not known.commute(inside[2], reader)
    assert known.commute(inside[0], replace(inside[2], body=(Store("h", (Var("a_n"), Int(0)), Float(1.0)),)))  # type: ignore[arg-type]


def test_children_stay_outside_the_group_when_rows_are_split_or_tiled() -> None:
    for step in (Split("p_n", 4, "cases"), Split("p_n", 4, "peel"), Tile("p_n", "p_j", "p_n", 4, 1, 16, (1, 1, 1, 1))):
        f = step.apply(programs.cell())
        known, groups = QuickRules.of(f), find_loop(f, "g", None)
        (arm,) = groups.body
        assert isinstance(arm, If)
        others = [s for s in arm.then if not (isinstance(s, For) and s.var in ("a_n", "b_n"))]
        reads_h = For("z", Int(0), Int(1), tuple(others))
        writes_h = next(s for s in arm.then if isinstance(s, For) and s.var == "a_n")
        assert known.commute(reads_h, writes_h)


def test_a_let_in_an_index_is_what_it_stands_for() -> None:
    """i + i mod 2 takes the value 2 twice, though it looks like i plus something else."""
    wave = Let(Var("a"), Binary("mod", ROW, Int(2)))
    place = (Binary("add", ROW, Var("a")), Int(0))
    body = (wave, Store("t", place, Float(1.0)), Store("u", (ROW, Int(0)), Load("t", place)))
    f = program(For("i", Int(0), Int(4), body))
    assert why_not_any_order(f, (find_loop(f, "i", None),)) is not None
    f = program(For("i", Int(0), Int(4), (Let(Var("a"), Binary("mul", ROW, Int(2))), *body[1:])))
    assert why_not_any_order(f, (find_loop(f, "i", None),)) is None


def test_an_index_read_from_memory_tells_nothing() -> None:
    place = (Binary("add", ROW, Load("permutation", (Int(0),), "i64")), Int(0))
    loop = For("i", Int(0), Int(4), (Store("t", place, Float(1.0)),))
    assert why_not_any_order(program(loop), (loop,)) is not None


@pytest.mark.parametrize(("extent", "both"), [(4, True), (5, False)])
def test_two_loops_in_one_index(extent: int, both: bool) -> None:
    """i*4 + j determines i and j as long as j stays below 4."""
    body = (Store("t", (Binary("add", Binary("mul", ROW, Int(4)), COLUMN), Int(0)), Float(1.0)),)
    inner = For("j", Int(0), Int(extent), body)
    outer = For("i", Int(0), N, (inner,))
    known = QuickRules.of(program(outer))
    ((x, y),) = known.conflicts(body, body, (outer, inner))
    assert known.loose(x, y, ("i", "j")) == (() if both else ("i", "j"))


def test_nothing_moves_across_a_barrier() -> None:
    f = programs.cell()
    groups = f.body[1]
    assert isinstance(groups, For)
    (arm,) = groups.body
    assert isinstance(arm, If)
    p, b, a = arm.then
    f = replace(f, body=(f.body[0], replace(groups, body=(p, Barrier(), b, a))))
    with pytest.raises(ScheduleError, match="cannot move before a barrier"):
        Fuse(("p_n", "b_n")).apply(f)
    assert apply(f, (Fuse(("b_n", "a_n")),)) != f


def test_bounds_keep_loops_inside_what_they_depend_on() -> None:
    f = without_condition()
    groups = find_loop(f, "g", None)
    f = replace(f, body=(replace(groups, body=groups.body[:1]),))
    with pytest.raises(ScheduleError, match="the bounds of 'p_n' depend on 'g'"):
        Reorder(("p_n", "g")).apply(f)
