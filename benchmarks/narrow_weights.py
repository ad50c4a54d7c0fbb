"""What weights in 16 and 8 bits gain and cost: time against weights in fp32, and the worst deviation of each state.

    python benchmarks/narrow_weights.py [--models tree_lstm,lstm,gru] [--hidden 256,512] [--batch 1,10] [--seconds 2]
        [--table-bytes 0]

All programs of a case are timed in turns in one process, on one thread, by the thread's own clock; the best turn of
each counts. `faster` is the time with fp32 over the time with narrow weights.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import cortex
from cortex import zoo

VOCABULARY = 1000
TYPES = ("f32", "bf16", "fp16", "int16", "int8")
CALLS = 3  # in a turn; the first finds the caches full of the other programs' weights


def best_in_turns(programs: Sequence[Any], trees: list[Any], seconds: float) -> list[float]:
    """Microseconds of a call of each program."""
    best = [float("inf")] * len(programs)
    end = time.perf_counter() + seconds
    while best[-1] == float("inf") or time.perf_counter() < end:
        for i, fast in enumerate(programs):
            for _ in range(CALLS):
                start = time.thread_time_ns()
                _ = fast(trees).h
                best[i] = min(best[i], (time.thread_time_ns() - start) / 1e3)
    return best


def measure(name: str, hidden: int, batch: int, seconds: float, table_bytes: int = 0) -> list[dict[str, Any]]:
    """A row for each type of weights."""
    entry = zoo.load(name)
    weights = entry.weights(hidden, VOCABULARY)
    trees = entry.structures(Random(1), batch, VOCABULARY)
    programs = [
        cortex.compile(entry.model, weights, examples=trees, weights_dtype=t, table_bytes=table_bytes) for t in TYPES
    ]
    times = best_in_turns(programs, trees, seconds)
    return [
        {
            "model": name,
            "hidden": hidden,
            "batch": batch,
            "weights": dtype,
            "us": round(us, 1),
            "faster": round(times[0] / us, 3),
            "deviation": {state: float(f"{d:.2g}") for state, d in fast.deviation(trees).items()},
        }
        for dtype, fast, us in zip(TYPES, programs, times, strict=True)
    ]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="tree_lstm,lstm,gru")
    parser.add_argument("--hidden", default="256,512")
    parser.add_argument("--batch", default="1,10")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--table-bytes", type=int, default=0, help="room for tables of products; 0: all work is done")
    options = parser.parse_args()
    print(f"{'model':<12} {'hidden':>6} {'batch':>5} {'weights':>7} {'us':>9} {'faster':>7}  worst deviation")
    for name in options.models.split(","):
        for hidden in map(int, options.hidden.split(",")):
            for batch in map(int, options.batch.split(",")):
                for row in measure(name, hidden, batch, options.seconds, options.table_bytes):
                    worst = ", ".join(f"{state} {d:.1e}" for state, d in row["deviation"].items())
                    print(
                        f"{name:<12} {hidden:>6} {batch:>5} {row['weights']:>7} {row['us']:>9.1f} "
                        f"{row['faster']:>7.2f}  {worst}"
                    )


if __name__ == "__main__":
    main()
