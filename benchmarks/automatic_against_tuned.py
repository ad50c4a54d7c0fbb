"""How near the automatic schedule comes to the best one that tuning finds, on the zoo and on random models.

    python benchmarks/automatic_against_tuned.py [--models tree_lstm,gru | --random 20] [--batch 1,10] [--seconds 1.5]
                                                 [--json FILE] [--all]

For each model, size and batch: the automatic schedule for the request is compiled, and so are its neighbours (other
tiles, every step that the scheduler considered and left, or took and would leave out); all are timed in turns, on the
first structure alone and on all at once, and the geometric mean counts. Time is the thread's own, and each schedule's
best round counts. `over_best` is the time of the automatic schedule over that of the fastest; `spearman` the
correlation of the ranks of predicted and measured times.

Tuning measures the schedules that are predicted best, five of them, as `cortex tune` does; `--all` measures all.
Random models are those of the fuzz tests at sizes that people use; nobody tuned anything for them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cortex
from cortex import zoo
from cortex.cli.tune import MEASURED, in_turns, predictions
from cortex.codegen.target import Target
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.plan import Plan, Wishes

sys.path.insert(0, str(Path(__file__).parent))
from ranking_of_schedules import spearman

VOCABULARY = 20_000
SIZES = (64, 96, 128, 200, 256, 300)


def from_zoo(names: list[str], batches: list[int]) -> Iterator[tuple[str, Any, Any, list[Any]]]:
    for name in names:
        entry = zoo.load(name)
        for hidden in entry.hidden:
            weights = entry.weights(hidden, VOCABULARY)
            for batch in batches:
                trees = entry.structures(Random(1), batch, VOCABULARY)
                yield f"{name} {hidden} batch {batch}", entry.model, weights, trees


def at_random(count: int) -> Iterator[tuple[str, Any, Any, list[Any]]]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fuzz"))
    import random_cases
    import random_models

    for seed in range(5000, 5000 + count):
        m = random_models.random_model(seed, dict.fromkeys(SIZES, 1))
        trees = [tree for batch in random_cases.batches(m, 30) for tree in batch]
        weights = None if m.closure else m.arrays()
        yield f"random {seed}", random_cases.compilable(m), weights, trees


def measure(model: Any, weights: Any, trees: list[Any], seconds: float, everything: bool) -> dict[str, Any]:
    trace = Trace(model, Weights(weights))
    trace.explore()
    trace.see(trees)
    plan = Plan(Target.host(), None, None, wishes=Wishes(trace, trees))
    automatic = cortex.compile(model, weights, examples=trees)
    predicted = predictions(trace.model(), plan)
    assert next(iter(predicted)) == automatic.schedule
    others = sorted((s for s in predicted if s != automatic.schedule), key=lambda s: predicted[s])
    chosen = [automatic.schedule, *(others if everything else others[: MEASURED - 1])]
    systems = [automatic, *(cortex.compile(model, weights, examples=trees, schedule=s) for s in chosen[1:])]
    best, _ = in_turns(systems, plan.wishes.batches, seconds * len(systems), clock=time.thread_time_ns)
    winner = min(range(len(best)), key=lambda i: best[i])
    return {
        "schedules": len(systems),
        "automatic_us": round(best[0], 1),
        "best_us": round(best[winner], 1),
        "over_best": round(best[0] / best[winner], 3),
        "worst_over_best": round(max(best) / best[winner], 3),
        "spearman": spearman([predicted[s] for s in chosen], best),
        "winner": [repr(s) for s in chosen[winner] if s not in automatic.schedule.steps],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(zoo.ENTRIES))
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--batch", default="1,10")
    parser.add_argument("--seconds", type=float, default=0.5, help="time per schedule")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    cases = at_random(a.random) if a.random else from_zoo(a.models.split(","), list(map(int, a.batch.split(","))))
    rows = []
    for name, model, weights, trees in cases:
        row = {"case": name, **measure(model, weights, trees, a.seconds, a.all)}
        rows.append(row)
        print(json.dumps(row), flush=True)
        if a.json:
            a.json.write_text(json.dumps(rows, indent=1) + "\n")
    over = [r["over_best"] for r in rows]
    print(f"{len(rows)} cases: automatic over best: mean {np.mean(over):.3f}, worst {max(over):.3f}")


if __name__ == "__main__":
    main()
