"""Loops that run on into padding: only where every write they add lands in padding too."""

from __future__ import annotations

import numpy as np

from cortex.ilir.interp import run
from cortex.ilir.ir import Accumulate, Buffer, For, Func, Scope, Store
from cortex.ir.scalar import Float, Int, Load, Var
from cortex.schedule.vectorize import Vectorize


def test_a_sum_of_one_term_stays_one_term() -> None:
    """Its iterations do not depend on each other, there being one; vectors of four would add what the padding holds."""
    one = (Int(1),)
    buffers = (Buffer("x", "f32", one, Scope.PARAM, 8), Buffer("y", "f32", one, Scope.STATE, 8))
    body = (
        Store("y", (Int(0),), Float(0.0)),
        For("k", Int(0), Int(1), (Accumulate("y", (Int(0),), "add", Load("x", (Var("k"),))),)),
    )
    f = Vectorize("k", 4).apply(Func("f", (), (), buffers, body))
    assert run(f, {}, {}, {"x": np.array([3.0])}).buffers["y"].tolist() == [3.0]
