"""Any legal sequence of steps preserves meaning: random steps of all kinds, on random models and on those of the zoo.

    pytest tests/55_schedule/test_random_schedules.py                         100 schedules
    pytest tests/55_schedule/test_random_schedules.py --schedules 1000 -s     the long run, which `make fuzz` does too
    pytest tests/55_schedule/test_random_schedules.py --schedules 1 --first-schedule 17

For each schedule: steps refuse with ScheduleError or apply, and change nothing when they refuse; ra.interp of the
model after the recursion steps, ilir.interp of the scheduled program and, for some, the compiled code give the states
that ra.interp gives for the model as traced; the interpreter's counts are the cost model's; threads do not race, and
give the same bits on any number of them; the schedule prints as what rebuilds it.
"""

from __future__ import annotations

import random
import time
from collections import Counter

from random_requests import random_case
from random_schedules import faults, faults_compiled, random_schedule

from cortex.schedule.narrow import Narrow
from cortex.schedule.narrow_inputs import NarrowInputs
from cortex.schedule.schedule import GPU_STEPS, STEPS
from cortex.schedule.stream import Stream
from cortex.schedule.surround import Surround

EVERY_KIND = 100
"""From so many schedules on, every class of steps must have been accepted, and more often the more there are."""


def test_random_schedules_preserve_meaning(schedules: range) -> None:
    applied: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    compiled = 0
    wrong: list[str] = []
    start = time.monotonic()
    for seed in schedules:
        rng = random.Random(seed)
        case = random_case(rng)
        try:
            outcome = random_schedule(case.model, rng)
            found = list(faults(case, outcome))
            if seed % 5 == 0:
                found += faults_compiled(case, outcome)
                compiled += 1
        except Exception as error:
            error.add_note(f"schedule {seed}, {case.name}")
            raise
        if found:
            steps = "".join(f"    {s!r},\n" for s in outcome.steps)
            wrong.append(f"seed {seed}, {case.name}\n{steps}  differs: {'; '.join(found)}")
            print(wrong[-1], flush=True)
        applied.update(type(s).__name__ for s in outcome.steps)
        refused.update(type(s).__name__ for s in outcome.refused)
        if (seed + 1) % 100 == 0:
            print(f"{seed + 1 - schedules.start} schedules, {time.monotonic() - start:.0f} s", flush=True)
    print(
        f"{len(schedules)} schedules, {compiled} of them compiled: {len(wrong)} mismatches; {applied.total()} steps "
        f"accepted, {refused.total()} refused"
    )
    print("accepted:", ", ".join(f"{s.__name__} {applied[s.__name__]}" for s in STEPS))
    assert not wrong, "\n".join(wrong)
    # Which round, and so change the meaning; which 68_gpu draws; which are for programs of other kinds.
    left_out = (Narrow, NarrowInputs, *GPU_STEPS, Surround, Stream)
    drawn = [s.__name__ for s in STEPS if s not in left_out]
    rare = {name: applied[name] for name in drawn if applied[name] < len(schedules) // EVERY_KIND}
    assert not rare, f"too rarely accepted to say anything: {rare}"
    assert len(schedules) < EVERY_KIND or refused.total() > 5 * len(schedules)
