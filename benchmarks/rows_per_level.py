"""How near products come to the machine's peak, by the number of nodes that run together and the gates of a cell.

    python benchmarks/rows_per_level.py [--hidden 256] [--rows 12] [--gates 1,2,3,4,5]

A recurrent cell adds up so many products of its state with H x H weights. Sequences of equal length run side by side,
so that every level has as many nodes as there are sequences. Printed are GFLOP/s of the recurrent product: the median
over levels of what `fast.report` measures. One row is a matrix times a vector, and bound by reading the weights: four
bytes for two operations, so that 50 GFLOP/s are 100 GB/s.
"""

from __future__ import annotations

import argparse
import re
from statistics import median
from typing import Any

import numpy as np

import cortex
from cortex.bench.data import Link

LENGTH = 20
WORDS = 50


def cell_of(gates: int) -> Any:
    """A cell whose state is the hyperbolic tangent of the sum of its gates."""

    @cortex.model
    def cell(node: Any, w: Any) -> Any:
        h = cortex.zeros(w.Wh.shape[1]) if node.prev is None else cell(node.prev, w).h
        total = w.Wh @ h + w.emb[node.word]
        return cortex.state(h=cortex.tanh(sum(cortex.split(total, gates)) if gates > 1 else total))

    return cell


def sequences(count: int) -> list[Link]:
    """So many sequences."""

    def sequence() -> Link:
        last = None
        for word in range(LENGTH):
            last = Link(last, None, word)
        assert last is not None
        return last

    return [sequence() for _ in range(count)]


def level_us(fast: Any, rows: int) -> float:
    """Microseconds of a level of so many nodes."""
    text = str(fast.report(sequences(rows)))
    return median(float(line.split()[3]) for line in text.splitlines() if re.match(r"\s+\d+\s+has_prev", line))


def main() -> None:
    """A line for each number of gates."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hidden", type=int, default=256)
    options.add_argument("--rows", type=int, default=12)
    options.add_argument("--gates", default="1,2,3,4,5")
    given = options.parse_args()
    hidden, draw = given.hidden, np.random.default_rng(0)
    print("gates " + " ".join(f"{rows:6}" for rows in range(1, given.rows + 1)))
    for gates in map(int, given.gates.split(",")):
        weights = {
            "Wh": (draw.normal(size=(gates * hidden, hidden)) / hidden).astype(np.float32),
            "emb": draw.normal(size=(WORDS, gates * hidden)).astype(np.float32),
        }
        fast = cortex.compile(cell_of(gates), weights, table_bytes=0)
        fast(sequences(1))
        rates = [rows * gates * hidden**2 * 2 / level_us(fast, rows) / 1e3 for rows in range(1, given.rows + 1)]
        print(f"{gates:5} " + " ".join(f"{rate:6.1f}" for rate in rates), flush=True)


if __name__ == "__main__":
    main()
