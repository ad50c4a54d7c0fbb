"""How well the cost model ranks schedules: Spearman's correlation of predicted and measured time.

    python benchmarks/ranking_of_schedules.py [--models tree_lstm,gru] [--hidden 256] [--batch 10] [--rounds 40]

For each model, schedules with many tiles, fused and not, inputs taken out of the recursion or not, are compiled and
timed on one request. Time is the thread's own (what other programs take does not count), rounds are interleaved and
each schedule's best round counts, so that a busy machine disturbs all alike. No measurement takes part in the
prediction.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from random import Random

import numpy as np

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.cost.predict import Predictor
from cortex.recursion.inputs_inside import InputsInside
from cortex.runtime.measure_machine import here
from cortex.schedule.default import Choices
from cortex.schedule.registers import TileChoice

SPACE = (
    *(Choices(tile=TileChoice(wide, tallest, 4)) for wide, tallest in product((1, 2, 4), (1, 2, 3, 4, 6, 9))),
    *(Choices(fuse=False, tile=TileChoice(wide, tallest)) for wide, tallest in product((1, 4), (1, 3, 9))),
)


def ranks(values: list[float]) -> np.ndarray:
    """Ranks, ties sharing their mean."""
    values = np.asarray(values)
    return np.array([(np.sum(values < v) + np.sum(values <= v) - 1) / 2 for v in values])


def spearman(x: list[float], y: list[float]) -> float:
    return float(np.corrcoef(ranks(x), ranks(y))[0, 1])


def rank(name: str, hidden: int, batch: int, rounds: int) -> dict:
    entry = zoo.load(name)
    weights = entry.weights(hidden, 5000)
    trees = entry.structures(Random(1), batch, 5000)
    machine = here()
    seen, rows = set(), []
    for choices, inside in product(SPACE, ((), (InputsInside(),))):
        recursion = (*ALWAYS, *inside)
        fast = cortex.compile(entry.model, weights, recursion=recursion, choices=choices)
        fast(trees)
        if fast.schedule not in seen:
            seen.add(fast.schedule)
            prediction = Predictor(fast.compiled.func, machine)(fast.linearize(trees))
            rows.append((choices, fast, prediction.us))
    best = [float("inf")] * len(rows)
    for _ in range(rounds):
        for i, (_, fast, _) in enumerate(rows):
            fast(trees)
            start = time.thread_time_ns()
            fast(trees)
            best[i] = min(best[i], (time.thread_time_ns() - start) / 1e3)
    predicted = [us for *_, us in rows]
    order = sorted(range(len(rows)), key=lambda i: best[i])
    for i in order:
        print(f"  {best[i]:9.1f} us measured {predicted[i]:9.1f} predicted  {rows[i][0]}")
    chosen = min(range(len(rows)), key=lambda i: predicted[i])
    result = {
        "model": name,
        "hidden": hidden,
        "batch": batch,
        "schedules": len(rows),
        "spearman": spearman(predicted, best),
        "chosen_over_best": best[chosen] / min(best),
        "worst_over_best": max(best) / min(best),
        "median_error": float(np.median([abs(p / b - 1) for p, b in zip(predicted, best, strict=True)])),
    }
    print(json.dumps(result))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="tree_lstm,tree_gru,mv_rnn,gru")
    parser.add_argument("--hidden", type=int, default=None)
    parser.add_argument("--batch", default="1,10")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    results = []
    for name in a.models.split(","):
        for batch in map(int, a.batch.split(",")):
            results.append(rank(name, a.hidden or zoo.load(name).hidden[0], batch, a.rounds))
    print("mean Spearman", round(float(np.mean([r["spearman"] for r in results])), 3))
    if a.json:
        a.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
