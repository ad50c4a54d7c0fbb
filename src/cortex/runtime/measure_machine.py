"""Measuring this machine for the cost model, once; the figures are kept in the cache folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cortex import _native
from cortex.codegen.target import Target
from cortex.cost.machine import KIB, MIB, Machine
from cortex.options import Options

SECONDS = 0.015  # per figure
L1_UNKNOWN, L2_UNKNOWN, BARRIER_UNKNOWN = 32 * KIB, MIB, 200.0
BARRIER_SLOWEST = 2000.0
"""What takes longer than this is a busy machine, not a barrier."""


def here(cache: Path | None = None) -> Machine:
    """This machine: from a file in the folder `cache`, or measured now (about half a second) and written there."""
    target = Target.host()
    file = kept_in(Options.from_environment().cache if cache is None else cache)
    return _known(file) or _remember(file, measure(target, cache_bytes(1, L1_UNKNOWN), cache_bytes(2, L2_UNKNOWN)))


def kept_in(cache: Path) -> Path:
    """The file of this machine's figures in a cache folder."""
    target = Target.host()
    return cache / f"core-{target.cpu}-{target.lanes}-{cache_bytes(2, L2_UNKNOWN) // KIB}K.json"


@lru_cache(maxsize=4)
def _known(file: Path) -> Machine | None:
    """What is in a file; None where there is none, or nothing of use."""
    try:
        return Machine.read(file)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(file: Path, found: Machine) -> Machine:
    """Keep the figures, if the folder can be written to, for this process in any case."""
    with suppress(OSError):
        found.save(file)
    _known.cache_clear()
    return _known(file) or found


def measure(target: Target, l1: int, l2: int) -> Machine:
    """All figures, the best of many tries each."""
    from cortex.runtime import machine_kernels as kernels  # the code generator is needed only here

    sizes = sorted({l1 // 2, l1, 2 * l1, l2 // 4, l2 // 2, l2, 2 * l2, 4 * l2, 64 * MIB})
    reads = [(size, read_rate(target, size)) for size in sizes]
    falling = [(size, min(rate for _, rate in reads[: i + 1])) for i, (size, _) in enumerate(reads)]
    return Machine(
        cpu=target.cpu,
        lanes=target.lanes,
        registers=target.registers,
        broadcasts=target.broadcasts,
        fma=multiply_add_ns(target, kernels.accumulators(target)),
        chain=multiply_add_ns(target, 1),
        load=4 * target.lanes / falling[0][1],
        broadcast=broadcast_ns(target),
        reads=tuple(falling),
        l1=l1,
        l2=l2,
        barrier=barrier_ns(),
    )


def barrier_ns() -> float:
    """Nanoseconds that two threads take to wait for each other."""
    if (os.cpu_count() or 1) < 2:
        return BARRIER_UNKNOWN
    fewest, end = BARRIER_SLOWEST, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        fewest = min(fewest, _native.barrier_nanoseconds(2))
    return fewest


def cache_bytes(level: int, unknown: int) -> int:
    """The size of a core's data cache as the system tells it; `unknown` where it does not."""
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            is_code = (index / "type").read_text().strip() == "Instruction"
            if (index / "level").read_text().strip() == str(level) and not is_code:
                return int((index / "size").read_text().strip().removesuffix("K")) * KIB
        except (OSError, ValueError):
            continue
    return unknown


def best(run: Callable[[], object], seconds: float) -> float:
    """The fewest nanoseconds `run` takes in many tries."""
    fewest = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        run()
        fewest = min(fewest, time.perf_counter_ns() - start)
    return fewest


def multiply_add_ns(target: Target, count: int) -> float:
    """Nanoseconds of one vector multiply-add when `count` independent sums are under way."""
    from cortex.runtime import machine_kernels as kernels

    rounds = 20_000
    run = kernels.kernel(kernels.multiply_add(target, count), target)
    x, out = kernels.aligned(2 * target.lanes), kernels.aligned(count * target.lanes)
    return best(lambda: run(x, out, rounds, 1), SECONDS) / (rounds * count)


def broadcast_ns(target: Target) -> float:
    """Nanoseconds of loading one element into all lanes and adding it."""
    from cortex.runtime import machine_kernels as kernels

    rows, rounds = 128, 1000
    run = kernels.kernel(kernels.broadcast(target), target)
    x, out = kernels.aligned(rows * kernels.READ_UNROLL), kernels.aligned(kernels.READ_UNROLL * target.lanes)
    return best(lambda: run(x, out, rounds, rows), SECONDS) / (rounds * rows * kernels.READ_UNROLL)


def read_rate(target: Target, size: int) -> float:
    """GB/s of reading `size` bytes again and again."""
    from cortex.runtime import machine_kernels as kernels

    row = kernels.READ_UNROLL * target.lanes
    rounds = max(1, 4 * MIB // size)
    run = kernels.kernel(kernels.read(target), target)
    x, out = kernels.aligned(size // 4), kernels.aligned(row)
    return rounds * size / best(lambda: run(x, out, rounds, size // 4 // row), SECONDS)
