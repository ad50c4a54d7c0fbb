"""Calls per second of one compiled model from several Python threads, each call on its caller's thread alone.

    python benchmarks/concurrent_calls.py [--models tree_lstm,tree_gru] [--hidden 64,256] [--callers 1,2] [--seconds 1]

Rounds of one caller and of several are interleaved, and the best round of each counts: on a machine that does other
things too, that is the round which was least disturbed. `processors` is what the callers got of the machine in that
round (their processor time over its length), `per call` the processor time of one call. Where `processors` is well
below the number of callers the machine was busy and `ratio` says nothing. `at most` bounds the ratio on idle
processors: callers times processor time of a call alone over that of a call among others, but not more than one call's
time over its time with the GIL. Threads that sleep until the GIL is free, as they do where calls are short, stay below
it. `GIL` is that time: what a call takes beyond one of the bound request, which runs little else than the compiled
function, without the GIL. Every caller has objects of its own, as in a server: objects that two processors count
references of at once are slow to walk.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cortex
from cortex import zoo

VOCAB = 2000
REQUESTS = 8


@dataclass(frozen=True)
class Round:
    """What some callers did in some time."""

    calls: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        return self.calls / self.seconds

    @property
    def per_call(self) -> float:
        return self.processor_seconds / self.calls


def one_round(calls: list[Callable[[Any], object]], requests: list[list[Any]], seconds: float) -> Round:
    """Let every caller make calls for some time, each with requests of its own."""
    counts, used = [0] * len(calls), [0.0] * len(calls)
    ready = threading.Barrier(len(calls) + 1)

    def work(number: int) -> None:
        call, mine, done = calls[number], requests[number], 0
        ready.wait()
        begun, until = time.thread_time(), time.perf_counter() + seconds
        while time.perf_counter() < until:
            for request in mine:
                call(request)
            done += len(mine)
        counts[number], used[number] = done, time.thread_time() - begun

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    ready.wait()
    start = time.perf_counter()
    for t in threads:
        t.join()
    return Round(sum(counts), time.perf_counter() - start, sum(used))


def with_gil(fast: Any, requests: list[Any]) -> float:
    """Seconds that a call holds the GIL, from interleaved minima."""
    total = 0.0
    for request in requests:
        best = {fast: float("inf"), fast.bind(request): float("inf")}
        for _ in range(300):
            for call in best:
                start = time.perf_counter()
                if call is fast:
                    fast(request)
                else:
                    call()
                best[call] = min(best[call], time.perf_counter() - start)
        whole, kernels = best.values()
        total += whole - kernels
    return total / len(requests)


def cell(model: str, hidden: int, callers: list[int], seconds: float, rounds: int) -> tuple[dict[int, Round], float]:
    """The best round for each number of callers, and the seconds that a call holds the GIL."""
    entry = zoo.load(model)
    requests = [_requests(entry) for _ in range(max(callers))]
    fast = cortex.compile(entry.model, entry.weights(hidden=hidden, vocab=VOCAB), examples=requests[0])
    best: dict[int, Round] = {}
    for _ in range(rounds):
        for count in callers:
            found = one_round([fast] * count, requests, seconds / rounds)
            if count not in best or found.rate > best[count].rate:
                best[count] = found
    return best, with_gil(fast, requests[0])


def _requests(entry: Any) -> list[Any]:
    """The same requests each time, as new objects."""
    rng = random.Random(0)
    return [entry.structures(rng, 1, VOCAB)[0] for _ in range(REQUESTS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="tree_lstm,tree_gru,tree_rnn")
    parser.add_argument("--hidden", default="64,256")
    parser.add_argument("--callers", default="1,2")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each number of callers")
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    callers = [int(c) for c in given.callers.split(",")]
    titles = ("model", "H", "callers", "calls/s", "ratio", "processors", "per call", "GIL", "at most")
    print("".join(f"{t:>{w}}" for t, w in zip(titles, (12, 5, 9, 10, 7, 12, 11, 10, 10), strict=True)))
    for model in given.models.split(","):
        for hidden in (int(h) for h in given.hidden.split(",")):
            found, held = cell(model, hidden, callers, given.seconds, given.rounds)
            first = found[callers[0]]
            for count, r in found.items():
                share = r.processor_seconds / r.seconds
                bound = min(count * first.per_call / r.per_call, first.per_call / held) / callers[0]
                print(
                    f"{model:>12}{hidden:5}{count:9}{r.rate:10.0f}{r.rate / first.rate:7.2f}{share:12.2f}"
                    f"{1e6 * r.per_call:8.1f} us{1e6 * held:7.1f} us{bound:10.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
