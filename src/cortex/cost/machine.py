"""A machine as the cost model sees it: rates of one core, and how reading slows down as the data grows.

Rates are measured by kernels that the compiler itself generates (`runtime/measure_machine.py`), once per machine; the
figures with a default below (loop, branch, call) are not measured but judged.

There is one curve instead of cache levels with sizes and rates: `reads` says at which rate data is read
again when so many bytes have been touched since it was read last. Caches show in it as they are, with whatever
replacement policy they have; the level's name is only for people.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Machine:
    """One core; times in nanoseconds.

    `fma`: one vector multiply-add among many independent ones; `chain`: one that waits for the one before; `load`: one
    vector load from the nearest cache; `broadcast`: of one element into all lanes. `reads`: (bytes touched between two
    reads of the same data, GB/s). `loop`: entering and leaving a loop that is not unrolled; `branch`: choosing the arm
    of a switch; `barrier`: all threads waiting for each other; `call`: from Python to the first statement and back;
    `broadcasts`: registers that a tile needs for single elements.
    """

    cpu: str
    lanes: int
    registers: int
    fma: float
    chain: float
    load: float
    broadcast: float
    reads: tuple[tuple[int, float], ...]
    l1: int
    l2: int
    barrier: float = 200.0
    loop: float = 2.0
    branch: float = 4.0
    call: float = 1500.0
    broadcasts: int = 1

    @property
    def peak(self) -> float:
        """Multiply-adds count as two operations: GFLOP/s."""
        return 2 * self.lanes / self.fma

    def rate(self, distance: float) -> float:
        """GB/s of data read again after `distance` other bytes; between measured sizes, straight in the logarithm."""
        points = self.reads
        if distance <= points[0][0]:
            return points[0][1]
        for (low, slow), (high, fast) in pairwise(points):
            if distance <= high:
                part = math.log(distance / low) / math.log(high / low)
                return slow + part * (fast - slow)
        return points[-1][1]

    def level(self, distance: float) -> str:
        """Where data lies that is read again after `distance` bytes."""
        return "L1" if distance <= self.l1 else "L2" if distance <= self.l2 else "beyond L2"

    def save(self, file: Path) -> None:
        """Write as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")  # nobody reads half a file
        partial.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        partial.replace(file)

    @staticmethod
    def read(file: Path) -> Machine:
        """What `save` wrote."""
        values = json.loads(file.read_text(encoding="utf-8"))
        values["reads"] = tuple((int(size), float(rate)) for size, rate in values["reads"])
        return Machine(**values)

    @staticmethod
    def example() -> Machine:
        """A fixed machine with 16 lanes, for tests: near the figures of a server core with AVX-512."""
        reads = (
            (16 * KIB, 350.0),
            (32 * KIB, 330.0),
            (64 * KIB, 160.0),
            (MIB, 150.0),
            (2 * MIB, 60.0),
            (4 * MIB, 31.0),
            (64 * MIB, 17.0),
        )
        return Machine("example", 16, 32, 0.16, 1.3, 0.18, 0.16, reads, 32 * KIB, 2 * MIB)
