"""Is the machine at its best just now, or does somebody else use it?

A virtual machine is slow for seconds at a time where its processors run other things too, or two of them are one core;
then whatever is measured is slow, and says nothing about itself. Asked are multiply-adds, on as many threads as are
measured: no system's own times decide whether they count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cortex.bench.limit import Machine
from cortex.codegen.target import Target
from cortex.runtime import machine_kernels as kernels

ENOUGH = 0.85  # of its best, which several processors have at once on a machine of one's own
MULTIPLY_ADDS = 0.004  # seconds of them
TRIES = 25  # until one is fast: 0.1 s, for which processors that rested are slow at first


def watch(machine: Machine, threads: int) -> Callable[[], bool]:
    """A function that says whether `threads` threads together do less than the machine can, now."""
    target = Target.host()
    count = kernels.accumulators(target)
    rounds = int(MULTIPLY_ADDS * machine.peak * 1e9 / (2 * count * target.lanes))
    run = kernels.kernel(kernels.multiply_add(target), target)
    memory = [(kernels.aligned(2 * target.lanes), kernels.aligned(count * target.lanes)) for _ in range(threads)]
    pool = ThreadPoolExecutor(threads)

    def seconds() -> float:
        start = time.perf_counter()
        for done in [pool.submit(run, x, out, rounds, 1) for x, out in memory]:
            done.result()
        return time.perf_counter() - start

    return lambda: all(seconds() > MULTIPLY_ADDS / ENOUGH for _ in range(TRIES))
