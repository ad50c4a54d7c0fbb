"""What a second thread brings: minimum times of compiled models on one and more threads, interleaved.

    python benchmarks/threads.py [--models tree_lstm,lstm] [--hidden 256,512] [--batch 1,10] [--threads 1,2]
                                 [--mappings columns,nodes,trees]

Columns: the model compiled for one thread (`serial`), then, for each mapping, the model compiled for several threads
and called with each number of them. Minima over the repetitions, averaged over the requests; pauses between calls are
not timed. The speed-up is that of the fastest column.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

import cortex
from cortex import zoo
from cortex.schedule.default import Choices

VOCAB = 2000
REQUESTS = 8


def measure(systems: dict[str, Any], requests: list[Any], budget: float) -> dict[str, float]:
    """Microseconds per request: the minimum of each over interleaved repetitions, averaged."""
    best = {name: [float("inf")] * len(requests) for name in systems}
    until = time.perf_counter() + budget
    while time.perf_counter() < until:
        for i, request in enumerate(requests):
            for name, call in systems.items():
                start = time.perf_counter()
                _ = call(request)[0]
                best[name][i] = min(best[name][i], time.perf_counter() - start)
    return {name: 1e6 * sum(times) / len(times) for name, times in best.items()}


def cell(
    model: str, hidden: int, batch: int, threads: list[int], mappings: list[Any], budget: float
) -> dict[str, float]:
    entry = zoo.load(model)
    weights = entry.weights(hidden=hidden, vocab=VOCAB)
    rng = random.Random(0)
    requests = [entry.structures(rng, batch, VOCAB) for _ in range(REQUESTS)]
    serial = cortex.compile(entry.model, weights, examples=requests[0])
    systems: dict[str, Any] = {"serial": serial}
    for mapping in mappings:
        team = cortex.compile(
            entry.model, weights, examples=requests[0], threads=max(2, *threads), choices=Choices(parallel=mapping)
        )
        systems |= {f"{mapping} x{t}": lambda request, t=t, team=team: team(request, threads=t) for t in threads}
    for request in requests:
        want = getattr(serial(request), entry.states[0])
        for name, call in systems.items():
            got = getattr(call(request), entry.states[0])
            assert (got == want).all(), f"{model} differs with {name}"
    return measure(systems, requests, budget)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="tree_lstm,tree_gru,lstm,tree_fc")
    parser.add_argument("--hidden", default="256,512")
    parser.add_argument("--batch", default="1,10")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--mappings", default="columns,nodes,trees")
    parser.add_argument("--seconds", type=float, default=4.0, help="time per cell")
    parser.add_argument("--json", help="write the rows to this file")
    given = parser.parse_args()
    threads = [int(t) for t in given.threads.split(",")]
    rows = []
    mappings = given.mappings.split(",")
    names = ["serial", *(f"{m} x{t}" for m in mappings for t in threads)]
    print(f"{'model':12} {'H':>4} {'batch':>5}  " + " ".join(f"{n:>11}" for n in names) + "   speed-up")
    for model in given.models.split(","):
        for hidden in map(int, given.hidden.split(",")):
            for batch in map(int, given.batch.split(",")):
                us = cell(model, hidden, batch, threads, mappings, given.seconds)
                rows.append({"model": model, "hidden": hidden, "batch": batch, "us": us})
                best = min(us[n] for n in names[1:])
                times = " ".join(f"{us[n]:11.1f}" for n in names)
                print(f"{model:12} {hidden:4} {batch:5}  {times}   {us['serial'] / best:.2f}", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
