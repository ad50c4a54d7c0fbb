"""Programs for the tests of poly/: zoo models at a stage of the pipeline, and small nests written by hand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from cortex import zoo
from cortex.codegen.target import Target
from cortex.compiler import stages
from cortex.frontend.trace import Trace
from cortex.ilir.ir import Accumulate, Buffer, For, Func, If, Scope, Stmt, Store
from cortex.ir.scalar import Binary, Expr, Float, Int, Load, Var
from cortex.lower.linear_form import LinearForm
from cortex.plan import Plan
from cortex.ra.ir import Model
from cortex.runtime.linearize import linearize

VOCABULARY = 50


@dataclass(frozen=True)
class Subject:
    """A zoo model at the stages that are loops, and structures it runs on."""

    model: Model
    funcs: dict[str, Func]
    structures: list[Any]

    def linear_form(self) -> LinearForm:
        return linearize(self.model, self.structures)


@cache
def subject(name: str, hidden: int = 8) -> Subject:
    entry = zoo.ENTRIES[name]
    trace = Trace(entry.model, entry.weights(hidden, VOCABULARY))
    structures = entry.structures(Random(0), 2, VOCABULARY)
    trace.see(structures)
    found = {s.name: s for s in stages(trace.model(), Plan(Target.host()))}
    funcs = {name: found[name].func for name in ("lowered", "scheduled", "passes")}
    return Subject(found["lowered"].model, funcs, structures)


def v(name: str) -> Var:
    return Var(name)


def add(x: Expr, y: int) -> Expr:
    return Binary("add", x, Int(y))


def loop(var: str, lo: Expr | int, hi: Expr | int, *body: Stmt) -> For:
    return For(var, Int(lo) if isinstance(lo, int) else lo, Int(hi) if isinstance(hi, int) else hi, body)


def program(*body: Stmt, **shapes: tuple[int, ...]) -> Func:
    buffers = tuple(Buffer(n, "f32", tuple(map(Int, shape)), Scope.SCRATCH) for n, shape in shapes.items())
    return Func("program", (), (), buffers, body)


def matmul() -> Func:
    here = (v("i"), v("j"))
    product = Binary("mul", Load("A", (v("i"), v("k"))), Load("B", (v("k"), v("j"))))
    return program(
        loop("i", 0, 3, loop("j", 0, 4,
             Store("C", here, Float(0.0)), loop("k", 0, 5, Accumulate("C", here, "add", product)))),
        A=(3, 5), B=(5, 4), C=(3, 4),
    )  # fmt: skip


def stencil() -> Func:
    """In place: an element from its neighbours, again and again."""
    neighbours = Binary("add", Load("u", (add(v("x"), -1),)), Load("u", (add(v("x"), 1),)))
    return program(loop("t", 0, 3, loop("x", 1, 6, Store("u", (v("x"),), neighbours))), u=(7,))


def triangle() -> Func:
    """Bounds that depend on loops around, a condition, a quotient."""
    even = Binary("eq", Binary("mod", v("b"), Int(2)), Int(0))
    return program(
        loop("a", 0, 7, loop("b", v("a"), 7, If(
            even,
            (Store("T", (v("a"), Binary("floordiv", v("b"), Int(2))), Load("x", (v("a"),))),),
            (Store("x", (v("b"),), Float(1.0)),),
        ))),
        T=(7, 4), x=(7,),
    )  # fmt: skip
