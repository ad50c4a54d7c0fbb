"""What every loop step is tested for: a golden of before and after, equal results, and refusals that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import programs
import pytest
from step_cases.cases import Steps

from cortex.errors import ScheduleError
from cortex.ilir.ir import Func
from cortex.ilir.show import show
from cortex.ir.step import Step, apply
from cortex.schedule.narrow import Narrow
from cortex.schedule.narrow_inputs import NarrowInputs
from cortex.schedule.schedule import namespace

Golden = Callable[[str, str], None]


def check_legal(golden: Golden, name: str, start: Func, before: Steps, step: Step[Func]) -> Func:
    """The step applies, gives what the golden file shows, and computes the same; gives the program after it.

    Narrow weights, and inputs, compute what the program before does with those that were rounded by other means.
    """
    f = apply(start, before)
    g = step.apply(f)
    golden(name, f"{step!r}\n\n-- before --\n{show(f)}\n-- after --\n{show(g)}")
    rounded = programs.rounded(g) if isinstance(step, Narrow) else {}
    inputs = next((s.dtype for s in (*before, step) if isinstance(s, NarrowInputs)), None)
    want = programs.states(start, rounded)["h"] if inputs is None else programs.by_hand(start, rounded, inputs)
    np.testing.assert_allclose(programs.states(g)["h"], want, rtol=1e-12, atol=1e-12)
    return g


def check_refused(golden: Golden, name: str, f: Func, step: Step[Func]) -> None:
    """The step refuses with the golden message and leaves the program as it was."""
    kept = repr(f)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(f)
    assert repr(f) == kept
    golden(name, str(refusal.value) + "\n")


def check_prints(steps: Iterable[Step[Func]]) -> None:
    """A step prints as the Python that rebuilds it, and can be a key."""
    for step in steps:
        assert eval(repr(step), namespace()) == step
        assert hash(eval(repr(step), namespace())) == hash(step)
