"""How long something takes, for limits that a busy machine does not exceed."""

from __future__ import annotations

import time
from collections.abc import Callable


def least(run: Callable[[], object], rounds: int = 5, calls: int = 1) -> float:
    """Seconds of this thread's processor time that a call takes, in the fastest of several rounds of calls."""
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(calls):
            run()
        times.append((time.thread_time() - start) / calls)
    return min(times)
