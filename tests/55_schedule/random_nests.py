"""Small random programs to try changes of order on, and arrays that keep what the programs declare.

Each program fills two states and then runs one or two nests over them. Indices are sums of loop variables with small
offsets, some seen through an index function; statements are stores and accumulations of sums that no other order of
dependent statements gives again.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import stages
from cortex.frontend.trace import Trace
from cortex.ilir.interp import run
from cortex.ilir.ir import Accumulate, Buffer, For, Func, If, IndexFunction, Let, Scope, Stmt, Store
from cortex.ir.scalar import Binary, BinaryFn, Expr, Float, Index, Int, Load, Var
from cortex.lower.linear_form import LinearForm
from cortex.plan import Plan
from cortex.runtime.linearize import linearize
from cortex.structures import generators

SIDE = 14  # of the square states; no index of the programs goes beyond it
STATES = ("a", "b")

Arrays = dict[str, Any]

FUNCTIONS = (
    IndexFunction("apart", Int(SIDE), ("non_negative", "injective"), Int(SIDE)),
    IndexFunction("rising", Int(SIDE), ("non_negative", "increasing"), Int(SIDE)),
    IndexFunction("any", Int(SIDE), ("non_negative",), Int(SIDE)),
)


def arrays(rng: random.Random) -> Arrays:
    """Values of the index functions that keep their declared facts."""
    return {
        "apart": np.array(rng.sample(range(SIDE), SIDE)),
        "rising": np.array(sorted(rng.randrange(SIDE) for _ in range(SIDE))),
        "any": np.array([rng.randrange(SIDE) for _ in range(SIDE)]),
    }


def results(f: Func, index: Arrays, sizes: dict[str, int] | None = None) -> Arrays:
    """The states after a run; equal only if they are equal in every bit."""
    rows = sizes["num_nodes"] if sizes else SIDE
    start = np.random.default_rng(0).normal(size=(2, rows, SIDE))
    given = {f"{name}_start": start[i] for i, name in enumerate(STATES)}
    return run(f, sizes or {}, index, given).buffers


def same(x: Arrays, y: Arrays) -> bool:
    """Are all states equal?"""
    return all(np.array_equal(x[name], y[name], equal_nan=True) for name in STATES)


class Writer:
    """Writes random nests; `through` is the share of indices that go through an index function."""

    def __init__(self, rng: random.Random, through: float = 0.3) -> None:
        self.rng, self.through = rng, through
        self.names = 0

    def program(self, nests: int) -> Func:
        """One nest of two or three loops, or several of equal bounds."""
        bounds = [(self.rng.randint(0, 1), self.rng.randint(3, 4)) for _ in range(self.rng.randint(2, 3))]
        body = tuple(self.nest(f"n{number}", bounds) for number in range(nests))
        return filled(Func("random", (), FUNCTIONS, (), body), Int(SIDE))

    def nest(self, prefix: str, bounds: list[tuple[int, int]]) -> Stmt:
        loops = [f"{prefix}_{letter}" for letter in "ijk"[: len(bounds)]]
        body = self.body(loops, self.rng.randint(1, 2))
        for name, (lo, hi) in reversed(list(zip(loops, bounds, strict=True))):
            first: Expr = Int(lo)
            if name != loops[0] and self.rng.random() < 0.1:
                first = Var(loops[0])  # a triangle
            body = (For(name, first, Int(hi), body),)
        return body[0]

    def body(self, loops: list[str], count: int) -> tuple[Stmt, ...]:
        stmts: tuple[Stmt, ...] = tuple(self.statement(loops) for _ in range(count))
        if self.rng.random() < 0.2:
            stmts = (If(self.condition(loops), stmts[:1]), *stmts[1:])
        if self.rng.random() < 0.2:
            self.names += 1
            let = Let(Var(f"let_{self.names}"), self.sum(loops))
            stmts = (let, *stmts, Store("a", (let.var, Int(0)), Float(0.75)))
        return stmts

    def statement(self, loops: list[str]) -> Stmt:
        read = [Load(self.rng.choice(STATES), self.element(loops)) for _ in range(self.rng.randint(0, 2))]
        value: Expr = Float(self.rng.uniform(0.5, 1.5))
        for load in read:
            value = Binary("add", value, Binary("mul", Float(self.rng.uniform(0.3, 0.6)), load))
        into = self.rng.choice(STATES)
        if self.rng.random() < 0.3:
            return Accumulate(into, self.element(loops), "add", value)
        return Store(into, self.element(loops), value)

    def element(self, loops: list[str]) -> tuple[Expr, Expr]:
        return self.place(loops), self.place(loops)

    def place(self, loops: list[str]) -> Expr:
        where = self.sum(loops)
        if self.rng.random() < self.through:
            return Index(self.rng.choice(FUNCTIONS).name, (where,))
        return where

    def sum(self, loops: list[str]) -> Expr:
        """At most 3 + 2*3 + 2: inside the states."""
        offset = Int(self.rng.randint(0, 2))
        chosen: list[Expr] = [Var(name) for name in self.rng.sample(loops, self.rng.choice((0, 1, 1, 1, 2)))]
        if chosen and self.rng.random() < 0.2:
            chosen[0] = Binary("mul", chosen[0], Int(2))
        where: Expr = offset
        for e in chosen:
            where = Binary("add", e, where)
        return where

    def condition(self, loops: list[str]) -> Expr:
        fn: BinaryFn = self.rng.choice(("lt", "ge", "eq"))
        x, y = self.place(loops), self.place(loops)
        return Binary(fn, Binary("mod", x, Int(2)), Int(0)) if fn == "eq" else Binary(fn, x, y)


def filled(f: Func, rows: Expr) -> Func:
    """`f` with the states, and a first nest that fills them."""
    index = (Var("fill_i"), Var("fill_j"))
    copies = tuple(Store(name, index, Load(f"{name}_start", index)) for name in STATES)
    fill = For("fill_i", Int(0), rows, (For("fill_j", Int(0), Int(SIDE), copies),))
    shape = (rows, Int(SIDE))
    buffers = [Buffer(name, "f32", shape, Scope.STATE) for name in STATES]
    buffers += [Buffer(f"{name}_start", "f32", shape, Scope.FIELD) for name in STATES]
    return replace(f, body=(fill, *f.body), buffers=tuple(buffers))


def over_trees(rng: random.Random, nests: int) -> tuple[Func, LinearForm]:
    """Nests over the nodes of the groups of a random request: elements of the nodes and of their children."""
    entry = zoo.load("tree_rnn")
    trees = [generators.perfect_tree(rng, rng.randint(1, 2), 5) for _ in range(2)]
    trace = Trace(entry.model, entry.weights(3, 5))
    trace.see(trees)
    lowered = next(s for s in stages(trace.model(), Plan(Target.host())) if s.name == "lowered")
    g, start = Var("g"), Index("group_start", (Var("g"),))

    def nest(prefix: str) -> Stmt:
        n, columns = f"{prefix}_n", f"{prefix}_c"
        below = tuple(Index(f"child_{side}", (Var(n),)) for side in ("left", "right"))

        def element() -> tuple[Expr, Expr]:
            column = Binary("add", Var(columns), Int(rng.randint(0, 1)))
            rows: tuple[Expr, ...] = (Var(n), Var(n), *below)
            return rng.choice(rows), rng.choice((column, Int(0)))

        value = Binary("add", Float(rng.uniform(0.5, 1.5)), Load(rng.choice(STATES), element()))
        store = Store(rng.choice(STATES), element(), value)
        inner = If(Binary("ge", below[0], Int(0)), (For(columns, Int(0), Int(3), (store,)),))
        return For(n, start, Binary("add", start, Index("group_len", (g,))), (inner,))

    body = For("g", Int(0), Var("num_groups"), tuple(nest(f"n{number}") for number in range(nests)))
    f = replace(lowered.func, body=(body,), packings=())
    return filled(f, Var("num_nodes")), linearize(lowered.model, trees)
