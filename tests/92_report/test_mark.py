"""Mark: the clock as a statement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cortex.codegen.llvm import run as compiled
from cortex.codegen.target import Target
from cortex.errors import InternalError
from cortex.ilir.interp import run
from cortex.ilir.ir import Buffer, For, Func, Mark, Scope
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.scalar import Int, Var

STAMPS = Buffer("t", "i64", (Int(50),), Scope.SCRATCH)
CLOCK = Func("clock", (), (), (STAMPS,), (For("i", Int(0), Int(50), (Mark("t", (Var("i"),)),)),))


def test_shown_verified_and_interpreted() -> None:
    verify(CLOCK)
    assert "t[i] = clock()" in show(CLOCK)
    result = run(CLOCK, {}, {}, {})
    assert not result.buffers["t"].any() and result.counts.stores["t"] == 50


def test_compiled_time_goes_on() -> None:
    stamps = compiled.run(CLOCK, Target.host(), {}, {}, {})["t"]
    assert (np.diff(stamps) >= 0).all() and stamps[-1] > stamps[0] > 0


@pytest.mark.parametrize("wrong", [replace(STAMPS, dtype="f32"), replace(STAMPS, scope=Scope.STATE)])
def test_clock_goes_to_integer_scratch(wrong: Buffer) -> None:
    with pytest.raises(InternalError, match="the clock goes to 't', which is no i64 scratch"):
        verify(replace(CLOCK, buffers=(wrong,)))
