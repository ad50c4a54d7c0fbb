"""Surround: zeros around a temporary, only where a sum leaves out what lies beyond it; with it, the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cortex.errors import ScheduleError
from cortex.ilir.interp import run as interpret
from cortex.ilir.ir import Accumulate, For, Func
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.node import Node, rewrite
from cortex.ir.scalar import Binary, Int
from cortex.ir.step import apply
from cortex.primitives.convolution import Convolution, lower, weight_shape
from cortex.schedule.flatten import Flatten
from cortex.schedule.schedule import Schedule
from cortex.schedule.surround import Surround

CONV = Convolution(2, (4, 3), 2, 3, (3, 3), (1, 1), ((1, 2), (1, 1)))
STRIDED = Convolution(1, (5, 4), 2, 3, (3, 2), (2, 1), ((1, 1), (1, 0)), (2, 1))
BLOCKED = Convolution(1, (3, 4), 8, 8, (3, 3), padding=((1, 1), (1, 1)), layout="NCHW4c", lanes=4)


def result(c: Convolution, f: Func) -> Any:
    made = np.random.default_rng(0)
    x = next(b for b in f.buffers if b.name == "x")
    shape = tuple(e.value for e in x.shape if isinstance(e, Int))
    given = {"x": made.standard_normal(shape), "w": made.standard_normal(weight_shape(c))}
    return interpret(f, {}, {}, given).buffers["y"]


@pytest.mark.parametrize(("c", "axis"), [(CONV, 1), (STRIDED, 1), (BLOCKED, 2)], ids=["plain", "strided", "blocks"])
def test_legal(c: Convolution, axis: int) -> None:
    f = lower(c)
    before = show(f)
    steps = (Surround("image", axis, "r"), Flatten(("p", "q")))
    for count in (1, 2):
        g = apply(f, steps[:count])
        verify(g)
        np.testing.assert_array_equal(result(c, g), result(c, f))
    assert show(f) == before
    assert Schedule.parse(repr(Schedule(steps))).steps == steps
    r = next(s for s in show(g).splitlines() if s.strip().startswith("for r in"))
    assert r.strip() == "for r in 0..3:"


def test_it_has_as_many_rows_as_are_read() -> None:
    assert "scratch image[2, 7, 10] f32" in show(Surround("image", 1, "r").apply(lower(CONV)))


def shorter(f: Func) -> Func:
    """A sum that leaves out a term that lies within the image."""

    def cut(n: Node) -> Node:
        return replace(n, lo=Binary("max", n.lo, Int(1))) if isinstance(n, For) and n.var == "r" else n

    return replace(f, body=tuple(rewrite(s, cut) for s in f.body))


def greatest(f: Func) -> Func:
    """A maximum instead of a sum: a zero may change it."""

    def change(n: Node) -> Node:
        return replace(n, fn="max") if isinstance(n, Accumulate) else n

    return replace(f, body=tuple(rewrite(s, change) for s in f.body))


@pytest.mark.parametrize(
    ("f", "step", "reason"),
    [
        (lower(CONV), Surround("x", 1, "r"), "'x' is not a temporary"),
        (lower(CONV), Surround("image", 3, "r"), "3 must be one of them"),
        (lower(CONV), Surround("image", 1, "sc"), "depends on|leaves out|not between"),
        (lower(CONV), Surround("sum", 1, "r"), "are not products with one place of 'sum'"),
        (lower(CONV), Surround("image", 1, "nowhere"), "has no loop 'nowhere'"),
        (shorter(lower(CONV)), Surround("image", 1, "r"), "leaves out terms that are within 'image'"),
        (greatest(lower(CONV)), Surround("image", 1, "r"), "are not products with one place of 'image'"),
    ],
    ids=["field", "axis", "other loop", "other buffer", "unknown", "within", "maximum"],
)
def test_refused(f: Func, step: Surround, reason: str) -> None:
    before = show(f)
    with pytest.raises(ScheduleError, match=reason):
        step.apply(f)
    assert show(f) == before
