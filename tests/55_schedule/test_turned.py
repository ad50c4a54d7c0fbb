"""What may be done to loops that run upwards may not be done to turned ones where it takes an order for granted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cortex.errors import ScheduleError
from cortex.ilir.ir import Buffer, For, Func, Scope, Stmt, Store
from cortex.ilir.verify import verify
from cortex.ir.node import rewrite
from cortex.ir.scalar import Expr, Float, Int, Load, Var
from cortex.ir.simplify import sub
from cortex.ir.step import Step, apply
from cortex.schedule.alternate import Alternate
from cortex.schedule.fuse import Fuse
from cortex.schedule.reorder import Reorder

G, K, N = Var("g"), Var("k"), Var("n")
Steps = tuple[Step[Func], ...]


def loop(var: str, *body: Stmt) -> For:
    return For(var, Int(1), N, body)


def program(*body: Stmt) -> Func:
    """`body` in a loop over g, working on x, y and z with rows for g."""
    buffers = tuple(Buffer(name, "f32", (N, N, N), Scope.STATE) for name in ("x", "y", "z"))
    f = Func("f", ("n",), (), buffers, (loop("g", *body),))
    verify(f)
    return f


def at(buffer: str, *index: Expr) -> Load:
    return Load(buffer, (G, *index))


def store(buffer: str, value: Expr, *index: Expr) -> Store:
    return Store(buffer, (G, *index), value)


def neighbours() -> Func:
    """Two loops, the second of which reads what an earlier iteration of the first wrote."""
    i, j = Var("i"), Var("j")
    first = loop("i", store("x", Float(1.0), i, Int(0)))
    return program(first, loop("j", store("y", at("x", sub(j, 1), Int(0)), j, Int(0))))


def diagonals() -> Func:
    """A nest in which an element needs its neighbour on the diagonal: each loop has independent iterations inside."""
    i = Var("i")
    return program(loop("k", loop("i", store("x", at("x", sub(K, 1), sub(i, 1)), K, i))))


@pytest.mark.parametrize(
    ("f", "turns", "step"),
    [
        (neighbours(), (Alternate("i", "g"), Alternate("j", "g")), Fuse(("i", "j"))),
        (diagonals(), (Alternate("i", "g"),), Reorder(("i", "k"))),
    ],
    ids=["fuse", "reorder"],
)
def test_legal_upwards_refused_turned(f: Func, turns: Steps, step: Step[Func]) -> None:
    verify(step.apply(f))
    turned = apply(f, turns)
    verify(turned)
    with pytest.raises(ScheduleError, match=r"needs later iterations|would change their order"):
        step.apply(turned)


def test_turning_again_turns_by_the_other_loop() -> None:
    i = Var("i")
    f = program(loop("k", loop("i", store("x", Float(1.0), K, i))))
    again = apply(f, (Alternate("i", "g"), Alternate("i", "k")))
    assert again == Alternate("i", "k").apply(f)
    assert rewrite(again, lambda n: replace(n, turned=None) if isinstance(n, For) else n) == f
