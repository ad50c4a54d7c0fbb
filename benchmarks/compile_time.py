"""Processor time from `cortex.compile` or `cortex.load` to the first result, and for a kind of node met later.

    python benchmarks/compile_time.py [--hidden 256] [--rounds 3]

Each figure is the best of several processes, imports excluded. Cold starts with nothing kept but the figures of the
machine. Rows of tables of leaves are computed when they are first looked up; figures with and without tables are told
apart.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

VOCABULARY = 20_000


def tree_lstm(hidden: int, table_bytes: int) -> float:
    """Seconds until the first answer of a TreeLSTM."""
    import cortex
    from cortex import compiler, zoo

    entry = zoo.load("tree_lstm")
    weights, trees = entry.weights(hidden, VOCABULARY), entry.structures(Random(0), 1, VOCABULARY)
    start = time.process_time()
    assert cortex.compile is compiler.compile
    cortex.compile(entry.model, weights, table_bytes=table_bytes)(trees[0])
    return time.process_time() - start


def loaded(hidden: int, table_bytes: int) -> float:
    """Seconds until the first answer of a TreeLSTM that was saved; the first process saves it."""
    import cortex
    from cortex import loader, zoo

    entry = zoo.load("tree_lstm")
    file = Path(os.environ["CORTEX_CACHE"]) / f"{hidden}-{table_bytes}.cortex"
    if not file.exists():
        cortex.compile(entry.model, entry.weights(hidden, VOCABULARY), table_bytes=table_bytes).save(file)
    trees = entry.structures(Random(0), 1, VOCABULARY)
    start = time.process_time()
    assert cortex.load is loader.load
    cortex.load(file)(trees[0])
    return time.process_time() - start


def new_kind(hidden: int) -> float:
    """Seconds that a request takes which is the first to have nodes of a third number of children."""
    import numpy as np

    import cortex

    class Node:
        def __init__(self, *children: Any) -> None:
            self.children = children
            self.word = 1

    @cortex.model
    def by_arity(node: Any, w: Any) -> Any:
        x = w.emb[node.word]
        for k in range(len(node.children)):
            x = x + w.U[k] @ by_arity(node.children[k], w)
        return cortex.tanh(x)

    rng = np.random.default_rng(0)
    weights = {"emb": rng.normal(size=(100, hidden)), "U": rng.normal(size=(3, hidden, hidden))}
    fast = cortex.compile(by_arity, weights, examples=[Node(Node(), Node())])
    before = fast.compilations
    start = time.process_time()
    fast(Node(Node(), Node(), Node()))
    assert fast.compilations == before + 1
    return time.process_time() - start


ROWS = (
    ("TreeLSTM, cold", "lstm", 0, False),
    ("TreeLSTM, cold, with tables", "lstm", 64 << 20, False),
    ("TreeLSTM, warm", "lstm", 0, True),
    ("TreeLSTM, warm, with tables", "lstm", 64 << 20, True),
    ("TreeLSTM, loaded", "load", 0, True),
    ("TreeLSTM, loaded, with tables", "load", 64 << 20, True),
    ("new kind, cold", "kind", 0, False),
    ("new kind, warm", "kind", 0, True),
)


def measure(hidden: int, rounds: int) -> Iterator[tuple[str, float]]:
    """What was done, and the milliseconds it took at best of so many times; nothing for none."""
    with tempfile.TemporaryDirectory() as folder:
        for name, what, tables, warm in ROWS if rounds else ():
            seconds = []
            for _ in range(rounds + 1):  # the first makes files and figures
                if not warm:
                    shutil.rmtree(Path(folder) / "code", ignore_errors=True)
                command = [sys.executable, __file__, "--hidden", str(hidden), "--one", what, str(tables)]
                run = subprocess.run(
                    command, env={**os.environ, "CORTEX_CACHE": folder}, capture_output=True, text=True
                )
                if run.returncode:
                    sys.exit(run.stderr)
                seconds.append(float(run.stdout))
            yield name, 1000 * min(seconds[1:])


def main() -> None:
    """Print the table; `--one` is how this program calls itself."""
    options = argparse.ArgumentParser()
    options.add_argument("--hidden", type=int, default=256)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--one", nargs=2)
    given = options.parse_args()
    if given.one:
        what, tables = given.one
        run_one = {"lstm": tree_lstm, "load": loaded, "kind": lambda hidden, _: new_kind(hidden)}[what]
        print(run_one(given.hidden, int(tables)))
        return
    for name, ms in measure(given.hidden, given.rounds):
        print(f"{name:30} {ms:7.0f} ms")


if __name__ == "__main__":
    main()
