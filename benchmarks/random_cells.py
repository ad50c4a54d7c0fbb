"""Twenty recursive models that nobody tuned for, against their limits.

    python benchmarks/random_cells.py [--count 20] [--threads 1,2] [--seconds 1] [--json FILE]

The models are those of the fuzz tests, at hidden sizes of 64 to 512: the first so many seeds for which nodes with
children do at least H x H multiply-adds each, on average over the request (as every cell that people use does; what
is left out is all but free of products, and the limit counts nothing else). Nothing else is asked of them. A request is
a handful of random structures. All work is done: no tables, no sharing. Timed from Python objects to the array of the
first state, objects new each time; the limit is counted in the program (`cortex.bench.limit_of_program`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import cortex
from cortex.bench.limit_of_program import counted_model, limit_of_program_us, work_in_recursion
from cortex.bench.machine import figures
from cortex.bench.quiet import watch
from cortex.bench.timing import how_many, interleave
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.options import Options
from cortex.runtime.linearize import linearize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "fuzz"))
import random_models
from random_structures import Node, random_batch

SIZES = (64, 96, 128, 192, 256, 320, 384, 512)
FIRST_SEED = 9000
BATCHES = 4
CALLS = 40  # in a turn, all with the same structures, as new objects


@dataclass(frozen=True)
class RandomCell:
    """A model, its weights and a request that can be built anew."""

    model: random_models.RandomModel
    hidden: int

    def trees(self) -> list[Node]:
        m = self.model
        return [tree for i in range(BATCHES) for tree in random_batch(1000 * m.seed + i, m.family, m.vector)]

    def arguments(self) -> tuple[Any, Any]:
        return random_models.compilable(self.model), None if self.model.closure else self.model.arrays()

    def limit_us(self, threads: int) -> float:
        m, form = self._counted()
        return limit_of_program_us(m, form, figures(Options.from_environment().cache).machine(), threads)

    def is_a_cell(self) -> bool:
        """Do nodes with children multiply by as much as one matrix of H x H?"""
        m, form = self._counted()
        macs, nodes = work_in_recursion(m, form)
        return nodes > 0 and macs >= nodes * self.hidden**2

    def _counted(self) -> tuple[Any, Any]:
        model, weights = self.arguments()
        trace = Trace(model, Weights(weights))
        trace.explore()
        trace.see(self.trees())
        m = counted_model(trace.model())
        return m, linearize(m, self.trees())


def random_cells(count: int) -> Iterator[RandomCell]:
    """The first `count` seeds that give a cell."""
    seed = FIRST_SEED
    while count:
        size = SIZES[seed % len(SIZES)]
        cell = RandomCell(random_models.random_model(seed, {size: 1}), size)
        if cell.is_a_cell():
            yield cell
            count -= 1
        seed += 1


def measure(cell: RandomCell, threads: int, seconds: float) -> dict[str, Any]:
    """One row."""
    model, weights = cell.arguments()
    fast = cortex.compile(model, weights, threads=threads, table_bytes=0)
    fast(cell.trees())
    first_state = attrgetter(fast.traced.outputs[0].name)
    systems = {"cortex": lambda trees: first_state(fast(trees))}
    calls = [cell.trees] * CALLS
    is_slow = watch(figures(Options.from_environment().cache).machine(), threads)
    timing = interleave(systems, calls[: how_many(systems, calls, seconds)], seconds, is_slow=is_slow)["cortex"]
    limit = cell.limit_us(threads)
    return {
        "seed": cell.model.seed,
        "family": cell.model.family,
        "hidden": cell.hidden,
        "threads": threads,
        "nodes": fast.linearize(cell.trees()).sizes["num_nodes"],
        "us": round(timing.us, 2),
        "us_min": round(timing.us_min, 2),
        "limit_us": round(limit, 2),
        "over_limit": round(timing.us / limit, 3),
    }


def over_limit(rows: list[dict[str, Any]]) -> float:
    """The geometric mean."""
    return geometric_mean(row["over_limit"] for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=1.0, help="time per cell")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    rows = []
    for threads in map(int, a.threads.split(",")):
        for cell in random_cells(a.count):
            rows.append(measure(cell, threads, a.seconds))
            print(json.dumps(rows[-1]), flush=True)
        mine = [row for row in rows if row["threads"] == threads]
        if mine:
            print(f"{len(mine)} cells, {threads} threads: geometric mean {over_limit(mine):.2f} times the limit")
    if a.json:
        a.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
