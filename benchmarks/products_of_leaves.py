"""What nodes above leaves save by looking up products: counted on the shapes of the trees, and measured.

python benchmarks/products_of_leaves.py --data ../shared/data --models tree_lstm,tree_gru,tree_fc --threads 1,2

Counted are multiply-adds of a child-sum TreeLSTM in units of H * H, and levels that read its weights (decision 19).
Measured are calls from Python objects, with tables of leaves, without the step and with it in turns: the mean over all
requests of the least and of the median time of each.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from statistics import fmean, median

import cortex
from cortex import zoo
from cortex.bench.data import Shape, Workload, workload
from cortex.cost.choose import ALWAYS
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts

BYTES = 1 << 30


def counts(shape: Shape) -> tuple[int, int, int]:
    """Inner nodes of a binary tree, those whose children are both leaves, and levels of inner nodes."""
    heights: list[int] = []
    for a, b, _ in shape:
        heights.append(0 if a < 0 else 1 + max(heights[a], heights[b]))
    return sum(h > 0 for h in heights), heights.count(1), max(heights)


def print_counts(requests: Workload) -> None:
    """Means over the trees, for each way of placing the products."""
    inner, above, levels = (fmean(x) for x in zip(*map(counts, requests.shapes), strict=True))
    print(f"{requests.source}: {inner:.1f} inner nodes, {above:.1f} above two leaves, {levels:.1f} levels")
    for what, products, read in (
        ("every parent multiplies", 5 * inner, levels),
        ("every inner node multiplies for its parent", 4 * inner, levels),
        ("the same, but for roots", 4 * (inner - 1), levels - 1),
        ("nodes above leaves look up", 5 * (inner - above), levels - 1),
        ("leaf children are looked up everywhere", 3 * (inner - above) + inner - 1, levels - 1),
    ):
        print(f"  {what:45} {products:6.0f} H*H, {read:4.1f} levels")


def measure(model: str, requests: Workload, vocab: int, hidden: int, batch: int, threads: int, rounds: int) -> str:
    """One line: least and median times without the step and with it."""
    entry = zoo.load(model)
    weights, examples = entry.weights(hidden, vocab), requests.fresh(0, batch)
    tables = () if model == "tree_fc" else (Tabulate("leaf", BYTES),)
    ways = [(*ALWAYS, *tables), (*ALWAYS, *tables, TabulateLeafProducts(BYTES))]
    systems = [cortex.compile(entry.model, weights, examples=examples, recursion=w, threads=threads) for w in ways]
    starts = range(0, len(requests.shapes) - batch + 1, batch)
    taken: dict[tuple[int, int], list[float]] = {(way, start): [] for way in (0, 1) for start in starts}
    for fast in systems:  # fills the rows of tables
        for start in starts:
            fast(requests.fresh(start, batch))
    gc.disable()
    for number in range(rounds):
        for start in starts:
            for way in (0, 1) if number % 2 else (1, 0):
                trees = requests.fresh(start, batch)
                began = time.perf_counter()
                _ = systems[way](trees).h
                taken[way, start].append(1e6 * (time.perf_counter() - began))
    gc.enable()
    least = [fmean(min(taken[way, start]) for start in starts) for way in (0, 1)]
    middle = [fmean(median(taken[way, start]) for start in starts) for way in (0, 1)]
    shown = (f"{what} {a:.0f} -> {b:.0f} us ({b / a:.2f})" for what, (a, b) in (("least", least), ("median", middle)))
    return f"{model} {hidden}, batch {batch}, {threads} threads: {', '.join(shown)}"


def main() -> None:
    """Print counts, then a line for each model, batch and number of threads."""
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path)
    options.add_argument("--models", default="tree_lstm,tree_gru,tree_fc")
    options.add_argument("--threads", default="1,2")
    options.add_argument("--batches", default="1,10")
    options.add_argument("--hidden", type=int, default=256)
    options.add_argument("--vocab", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=8)
    given = options.parse_args()
    print_counts(workload("tree_lstm", given.vocab, given.data))
    for model in given.models.split(","):
        requests = workload(model, given.vocab, given.data)
        for batch in map(int, given.batches.split(",")):
            for threads in map(int, given.threads.split(",")):
                print(measure(model, requests, given.vocab, given.hidden, batch, threads, given.rounds), flush=True)


if __name__ == "__main__":
    main()
