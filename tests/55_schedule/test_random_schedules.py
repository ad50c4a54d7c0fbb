"""Any legal sequence of steps preserves meaning: random steps on random models of the zoo, at tiny sizes.

pytest tests/55_schedule/test_random_schedules.py --schedules 1000
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from random_schedules import random_case, random_schedule, same

from cortex.schedule.schedule import LOOP_STEPS, Schedule, namespace

FOR_THREADS = {"Parallel", "ParallelTrees", "Alone", "PlaceBarriers", "Persist"}  # see tests/56_parallel


def test_random_schedules_preserve_meaning(request: pytest.FixtureRequest) -> None:
    first = request.config.getoption("--first-schedule")
    applied: Counter[str] = Counter()
    refused = 0
    wrong: list[str] = []
    for seed in range(first, first + request.config.getoption("--schedules")):
        rng = random.Random(seed)
        case = random_case(rng)
        outcome = random_schedule(case.f, rng, tries=rng.randint(4, 24))
        schedule = Schedule(outcome.steps)
        assert eval(repr(schedule), namespace()) == schedule
        if not same(case.states(case.f), case.states(outcome.f)):
            wrong.append(f"seed {seed}, {case.name}: {schedule!r}")
        applied.update(type(s).__name__ for s in outcome.steps)
        refused += outcome.refused
    assert not wrong, "\n".join(wrong)
    if request.config.getoption("--schedules") >= 100:  # enough that every step was legal somewhere, and refused too
        assert refused > 100
        assert {s.__name__ for s in LOOP_STEPS} - FOR_THREADS <= set(applied)
