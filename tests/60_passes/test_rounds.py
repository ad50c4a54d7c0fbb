"""Functions of functions run in rounds over the rows, where nothing else changes by that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.ilir.interp import run
from cortex.ilir.ir import Buffer, For, Func, IndexFunction, Let, LoopKind, Scope, Stmt, Store
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import walk
from cortex.ir.scalar import Binary, Expr, Float, Index, Int, Load, Unary, Var
from cortex.passes.rounds import MOST_VECTORS, in_rounds

ROWS, BLOCKS, LANES = 3, 2, 4
ROW, COLUMN = Var("row"), Binary("add", Binary("mul", Var("block"), Int(LANES)), Var("lane"))


def sigmoid(x: Expr) -> Expr:
    return Unary("sigmoid", x)


def tanh(x: Expr) -> Expr:
    return Unary("tanh", x)


def let(name: str, value: Expr) -> Let:
    return Let(Var(name, "f32"), value)


def value(name: str) -> Var:
    return Var(name, "f32")


def load(buffer: str, row: Expr = ROW) -> Expr:
    return Load(buffer, (row, COLUMN))


def store(buffer: str, x: Expr) -> Store:
    return Store(buffer, (ROW, COLUMN), x)


def loops(*body: Stmt, hi: Expr | None = None) -> Func:
    """The statements for all rows and columns of some arrays; `child` is another row for each."""
    inner = For("lane", Int(0), Int(LANES), body, LoopKind.VECTORIZED)
    rows = For("row", Int(0), hi or Int(ROWS), (For("block", Int(0), Int(BLOCKS), (inner,), LoopKind.UNROLLED),))
    shape = (Int(ROWS), Int(BLOCKS * LANES))
    buffers = (
        *(Buffer(name, "f32", shape, Scope.FIELD) for name in "abo"),
        Buffer("tile", "f32", shape, Scope.PRIVATE),
        *(Buffer(name, "f32", shape, Scope.STATE) for name in "ch"),
    )
    child = IndexFunction("child", Int(ROWS), ("non_negative",), Int(ROWS))
    return Func("rows", ("rows",), (child,), buffers, (rows,))


def cell() -> Func:
    """A memory cell: the gate `o` is needed in the second round only, and so is what it is made of."""
    return loops(
        let("i", sigmoid(load("a"))),
        let("u", tanh(load("b"))),
        let("new", Binary("mul", value("i"), value("u"))),
        let("before", Binary("add", load("o"), Float(0.5))),
        let("gate", sigmoid(value("before"))),
        store("c", value("new")),
        store("h", Binary("mul", value("gate"), tanh(value("new")))),
    )


def loops_of(f: Func) -> int:
    return sum(isinstance(n, For) and n.kind is LoopKind.SERIAL for s in f.body for n in walk(s))


def results(f: Func) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((ROWS, BLOCKS * LANES)).astype(np.float32) for name in "abo"}
    found = run(f, {"rows": ROWS}, {"child": np.array([2, 0, 1])}, given).buffers
    return found["c"], found["h"]


def test_each_level_of_functions_has_a_loop(golden: Callable[[str, str], None]) -> None:
    f = cell()
    g = in_rounds(f)
    verify(g)
    golden("passes/rounds_of_a_cell", f"-- before --\n{show(f)}\n-- after --\n{show(g)}")
    for before, after in zip(results(f), results(g), strict=True):
        np.testing.assert_array_equal(before, after)
    assert [b.name for b in g.buffers[len(f.buffers) :]] == ["new_kept"]


def test_three_levels_are_three_rounds() -> None:
    f = loops(let("x", tanh(load("a"))), let("y", sigmoid(value("x"))), store("h", tanh(value("y"))))
    g = in_rounds(f)
    verify(g)
    assert loops_of(g) == 3
    np.testing.assert_array_equal(results(f)[1], results(g)[1])


def test_addresses_are_computed_anew() -> None:
    child = Let(Var("below"), Index("child", (ROW,)))
    f = loops(
        child,
        let("x", tanh(load("a", Var("below")))),
        store("h", Binary("add", tanh(value("x")), load("b", Var("below")))),
    )
    g = in_rounds(f)
    verify(g)
    assert loops_of(g) == 2
    np.testing.assert_array_equal(results(f)[1], results(g)[1])


@pytest.mark.parametrize(
    "body",
    [
        (store("c", sigmoid(load("a"))), store("h", tanh(load("b")))),  # one level
        (let("x", tanh(load("c"))), store("c", tanh(value("x")))),  # the second round writes what the first reads
        (let("x", tanh(load("a"))), store("c", value("x")), store("h", tanh(Binary("add", value("x"), load("c"))))),
    ],
    ids=["one level", "written later", "read later"],
)
def test_what_stays_one_loop(body: tuple[Stmt, ...]) -> None:
    f = loops(*body)
    assert in_rounds(f) == f


def test_loops_whose_rows_are_not_known_to_be_few_stay_as_they_are() -> None:
    body = (let("x", tanh(load("a"))), store("h", tanh(value("x"))))
    assert loops_of(in_rounds(loops(*body, hi=Var("rows")))) == 1
    of_tile = (let("x", tanh(load("tile"))), store("h", tanh(value("x"))))  # as many as the tile has
    assert loops_of(in_rounds(loops(*of_tile, hi=Var("rows")))) == 2
    f = loops(*body)
    many = Int(MOST_VECTORS // BLOCKS + 1)
    larger = tuple(replace(b, shape=(many, b.shape[1])) for b in f.buffers)
    assert loops_of(in_rounds(replace(f, buffers=larger, body=loops(*body, hi=many).body))) == 1


def test_compiled_cells_have_rounds() -> None:
    entry = zoo.load("lstm")
    fast = cortex.compile(entry.model, entry.weights(32, 9))
    assert any(b.name.endswith("_kept") for b in fast.compiled.func.buffers)
