"""What every loop step is tested for: a golden of before and after, equal results, and refusals that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import programs
import pytest

from cortex.errors import ScheduleError
from cortex.ilir.ir import Func
from cortex.ilir.show import show
from cortex.ilir.verify import verify
from cortex.ir.step import Step, apply

Golden = Callable[[str, str], None]
Steps = tuple[Step[Func], ...]
Cases = dict[str, tuple[Steps, Step[Func]]]


def check_legal(name: str, cases: Cases, golden: Golden) -> Func:
    """The step applies, gives what the golden file shows, and computes the same; gives the program after it."""
    before, step = cases[name]
    start = programs.cell()
    f = apply(start, before)
    g = step.apply(f)
    verify(g)
    golden(f"schedule/{name}", f"{step!r}\n\n-- before --\n{show(f)}\n-- after --\n{show(g)}")
    np.testing.assert_allclose(programs.states(g)["h"], programs.states(start)["h"], rtol=1e-12, atol=1e-12)
    return g


def check_refused(name: str, cases: Cases, golden: Golden) -> None:
    """The step refuses with the golden message and leaves the program as it was."""
    before, step = cases[name]
    f = apply(programs.cell(), before)
    kept = repr(f)
    with pytest.raises(ScheduleError) as refusal:
        step.apply(f)
    assert repr(f) == kept
    golden(f"schedule/refused_{name}", str(refusal.value) + "\n")


def check_prints(steps: Iterable[Step[Func]], namespace: dict[str, type]) -> None:
    """A step prints as the Python that rebuilds it, and can be a key."""
    for step in steps:
        assert eval(repr(step), dict(namespace)) == step
        assert hash(eval(repr(step), dict(namespace))) == hash(step)
