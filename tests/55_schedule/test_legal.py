"""Legality: what isl and the prover accept beyond the quick rules, and the dependences that refusals show."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cortex.errors import ScheduleError
from cortex.ilir.interp import run
from cortex.ilir.ir import Buffer, For, Func, If, IndexFunction, Scope, Stmt, Store
from cortex.ilir.verify import verify
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Var
from cortex.ir.simplify import add
from cortex.ir.step import Step
from cortex.poly import legal
from cortex.poly.conflict import Conflict
from cortex.schedule.compute_at import ComputeAt
from cortex.schedule.dense import Dense
from cortex.schedule.distribute import Distribute
from cortex.schedule.fuse import Fuse
from cortex.schedule.inline import Inline
from cortex.schedule.parallel import Parallel
from cortex.schedule.reorder import Reorder
from cortex.schedule.split import Split
from cortex.schedule.tile import Tile
from cortex.schedule.vectorize import Vectorize

sys.path.insert(0, str(Path(__file__).parent))
import random_nests
from checks import Golden, check_refused

ROW, COLUMN, K = Var("i"), Var("j"), Var("k")


def at(x: Expr, offset: int) -> Expr:
    return add(x, offset)


def states(*body: Stmt, sizes: tuple[str, ...] = (), functions: tuple[IndexFunction, ...] = ()) -> Func:
    """A program over the two states of `random_nests`, which are filled first, and a temporary."""
    f = random_nests.filled(Func("program", sizes, functions, (), body), Int(random_nests.SIDE))
    return replace(f, buffers=(*f.buffers, Buffer("t", "f32", (Int(8),), Scope.SCRATCH)))


def diagonal(rows: int, columns: int, first: int = 1) -> Func:
    """An element from one that lies `rows` before and `columns` after it."""
    earlier = Load("a", (at(ROW, 2 - rows), at(COLUMN, columns)))
    store = Store("a", (at(ROW, 2), COLUMN), Binary("mul", Float(0.5), earlier))
    return states(For("i", Int(0), Int(5), (For("j", Int(first), Int(6), (store,)),)))


def pipeline(offset: int) -> Func:
    """A producer, and a consumer that reads what it wrote `offset` iterations after its own."""
    produce = For("i", Int(1), Int(6), (Store("a", (ROW, Int(0)), Load("b", (ROW, Int(1)))),))
    consume = For("j", Int(1), Int(6), (Store("b", (COLUMN, Int(0)), Load("a", (at(COLUMN, offset), Int(0)))),))
    return states(produce, consume)


def two_statements(offset: int) -> Func:
    """The same in one loop: the second statement reads what the first one wrote `offset` iterations after its own."""
    produce = Store("a", (ROW, Int(0)), Load("b", (ROW, Int(1))))
    consume = Store("b", (ROW, Int(0)), Load("a", (at(ROW, offset), Int(0))))
    return states(For("i", Int(1), Int(6), (produce, consume)))


def temporary(column: int) -> Func:
    """A temporary from column 0 of a state, of which another column is written before the temporary is used."""
    compute = For("i", Int(0), Int(8), (Store("t", (ROW,), Load("a", (ROW, Int(0)))),))
    write = For("k", Int(0), Int(8), (Store("a", (K, Int(column)), Float(0.5)),))
    use = For("j", Int(0), Int(8), (Store("b", (COLUMN, Int(0)), Load("t", (COLUMN,))),))
    return states(compute, write, use)


def rows_of_the_group(inside: bool) -> Func:
    """For each group, a temporary of its nodes, which are all nodes that a condition lets through."""
    f, _ = random_nests.over_trees(random.Random(0), 1)
    n, start, length = Var("n"), Index("group_start", (Var("g"),)), Index("group_len", (Var("g"),))
    here = Binary("and", Binary("ge", n, start), Binary("lt", n, Binary("add", start, length)))
    body = (Store("t", (n, Int(0)), Float(0.5)), Store("a", (n, Int(0)), Load("t", (n, Int(0)))))
    nodes = For("n", Int(0), Var("num_nodes"), (If(here, body),) if inside else body)
    buffers = (*f.buffers, Buffer("t", "f32", (Var("num_nodes"), Int(1)), Scope.SCRATCH))
    return replace(f, buffers=buffers, body=(f.body[0], For("g", Int(0), Var("num_groups"), (nodes,))))


def scatter(*facts: str) -> Func:
    """Two halves of a row, stored through an index function."""
    value = Load("b", (Int(0), K))
    halves = tuple(Store("a", (Index("p", (at(K, half),)), Int(0)), value) for half in (0, 4))
    declared = IndexFunction("p", Int(8), ("non_negative", *facts), Int(random_nests.SIDE))  # type: ignore[arg-type]
    return states(For("k", Int(0), Int(4), halves), functions=(declared,))


def rows_of_eight(condition: bool) -> Func:
    """A loop over n rows, in a place where n is known to be a multiple of 8."""
    n = Var("n")
    loop = For("i", Int(0), n, (Store("a", (Binary("mod", ROW, Int(4)), Int(0)), Float(1.0)),))
    multiple = Binary("eq", Binary("mod", n, Int(8)), Int(0))
    return states(If(multiple, (loop,)) if condition else loop, sizes=("n",))


def in_the_other_order() -> Func:
    """Bounds that are equal, but are not written alike."""
    n = Var("n")
    half = Binary("floordiv", Binary("mul", n, Int(2)), Int(2))
    first = For("i", Int(0), n, (Store("a", (ROW, Int(0)), Float(2.0)),))
    second = For("j", Int(0), half, (Store("b", (COLUMN, Int(0)), Load("a", (COLUMN, Int(0)))),))
    return states(first, second, sizes=("n",))


P = np.array([3, 1, 4, 5, 9, 2, 6, 8])
ACCEPTED: dict[str, tuple[Func, Step[Func]]] = {
    "interchange with a dependence forward in both loops": (diagonal(1, -1), Reorder(("j", "i"))),
    "fuse with a consumer of earlier iterations": (pipeline(-1), Fuse(("i", "j"))),
    "distribute statements that use earlier iterations": (two_statements(-1), Distribute("i")),
    "inline past a write of other columns": (temporary(1), Inline("t")),
    "compute at a place past a write of other columns": (temporary(1), ComputeAt("t", "j")),
    "vectorize stores through an injective function": (scatter("injective"), Vectorize("k", 4)),
    "share out stores through an injective function": (scatter("injective"), Parallel("k")),
    "split what a condition makes divisible": (rows_of_eight(True), Split("i", 4, "none")),
    "fuse loops of equal bounds": (in_the_other_order(), Fuse(("i", "j"))),
}
REFUSED: dict[str, tuple[Func, Step[Func]]] = {
    "interchange": (diagonal(1, 1), Reorder(("j", "i"))),
    "fuse": (pipeline(1), Fuse(("i", "j"))),
    "distribute": (two_statements(1), Distribute("i")),
    "tile": (diagonal(0, 1, first=0), Tile("i", "j", None, 1, 1, 4, (1,))),
    "inline": (temporary(0), Inline("t")),
    "compute_at": (temporary(0), ComputeAt("t", "j")),
    "dense": (rows_of_the_group(False), Dense(("t",))),
    "vectorize": (scatter(), Vectorize("k", 4)),
    "parallel": (scatter(), Parallel("k")),
    "split": (rows_of_eight(False), Split("i", 4, "none")),
}


def outcome(f: Func) -> dict[str, object]:
    start = np.random.default_rng(0).normal(size=(2, random_nests.SIDE, random_nests.SIDE))
    given = {"a_start": start[0], "b_start": start[1]}
    return run(f, dict.fromkeys(f.sizes, 8), {"p": P}, given).buffers  # type: ignore[return-value]


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_beyond_the_quick_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, step = ACCEPTED[name]
    g = step.apply(f)
    assert g != f
    if not isinstance(step, Parallel):  # what it leaves to every thread is for `Alone`
        verify(g)
    before, after = outcome(f), outcome(g)
    assert all(np.array_equal(before[b], after[b]) for b in random_nests.STATES)  # type: ignore[arg-type]
    only_quick_rules(monkeypatch)
    with pytest.raises(ScheduleError):
        step.apply(f)


def test_rows_that_the_prover_finds_in_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    f = rows_of_the_group(True)
    _, form = random_nests.over_trees(random.Random(0), 1)
    g = Dense(("t",)).apply(f)
    verify(g)
    before, after = (random_nests.results(x, form.arrays, form.sizes) for x in (f, g))
    assert random_nests.same(before, after)
    only_quick_rules(monkeypatch)
    with pytest.raises(ScheduleError, match="rows that may be of another group"):
        Dense(("t",)).apply(f)


def only_quick_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the first pair that the quick rules do not settle for a conflict, and prove nothing."""

    def first(f: Func, name: str, pairs: Iterator[legal.Pair], quickly: Callable[..., bool], order: object) -> object:
        return next((Conflict(x, y, ()) for x, y in pairs if not quickly(x, y)), None)

    monkeypatch.setattr(legal, "_first_conflict", first)
    monkeypatch.setattr(legal, "_proven", lambda *question: False)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_dependence(name: str, golden: Golden) -> None:
    check_refused(golden, f"schedule/refused_exactly_{name}", *REFUSED[name])


DEFAULT = """
import random, sys
import cortex
from cortex import compiler, zoo
from cortex.schedule.parallel_default import parallel_schedule

compiler.parallel_schedule = lambda f, threads, mapping: parallel_schedule(f, threads, mapping, least_work=0)
for name, threads in (("tree_lstm", 2), ("dag_rnn", 1)):
    entry = zoo.load(name)
    trees = entry.structures(random.Random(0), 2, 50)
    cortex.compile(entry.model, entry.weights(20, 50), examples=trees, threads=threads)(trees)
print(*sorted({"islpy", "z3"} & set(sys.modules)))
"""


def test_the_default_schedule_needs_the_quick_rules_only(tmp_path: Path) -> None:
    """Loading isl and Z3 would be a good part of the time that a compilation takes."""
    environment = {**os.environ, "CORTEX_VERIFY": "0", "CORTEX_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", DEFAULT], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
