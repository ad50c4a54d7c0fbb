"""A schedule without what makes weights and inputs narrow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cortex.ir.step import Step
from cortex.schedule.dense import Dense
from cortex.schedule.narrow import Narrow
from cortex.schedule.narrow_inputs import NarrowInputs
from cortex.schedule.schedule import Schedule


def in_f32(schedule: Schedule) -> Schedule:
    """The schedule that computes the same in f32: no `Narrow`, no `NarrowInputs`, nor steps on loops they made.

    before:  NarrowInputs('n', 'k', into='x'); Vectorize('x_k', 16); ...; Dense(('t', 'x')); Narrow('bf16')
    after:   ...; Dense(('t',))
    """
    copies = tuple(s.into for s in schedule if isinstance(s, NarrowInputs))
    loops = tuple(f"{name}_{loop}" for name in copies for loop in "nkms")
    buffers = {name for into in copies for name in (into, f"{into}_scale")}

    def is_kept(s: Step[Any]) -> bool:
        return not isinstance(s, Narrow | NarrowInputs) and not str(getattr(s, "loop", "")).startswith(loops)

    def edited(s: Step[Any]) -> Step[Any]:
        return replace(s, buffers=tuple(b for b in s.buffers if b not in buffers)) if isinstance(s, Dense) else s

    return Schedule(tuple(edited(s) for s in schedule if is_kept(s)))
