"""The ranking study: how good is the variant that a cost prefers, among variants that were measured?

`top` is the speed of the preferred variant over that of the fastest, `best_of_3` that of the fastest of the three
preferred ones, both as geometric means over layers; `spearman` is the mean correlation of ranks. Variants of equal
cost are as good as each other: of them, what a random pick gives on average counts, never what measuring would pick.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np

from cortex.bench.authors_variants import Movement, published, read
from cortex.bench.convolutions import Layer, in_turns
from cortex.codegen.target import Target
from cortex.primitives.choose import Ranking
from cortex.primitives.compiled import finished, machine_of, schedule_of
from cortex.primitives.convolution import lower, weight_shape
from cortex.primitives.variants import Variant
from cortex.runtime.kernel import Kernel

VARIANTS = 40
"""Variants that are measured per layer: the preferred one of each cost, and others at random."""


@dataclass(frozen=True)
class Row:
    """How well a cost ranks the variants of some layers."""

    data: str
    threads: int
    cost: str
    layers: int
    variants: int
    top: float
    best_of_3: float
    spearman: float

    def as_json(self) -> dict[str, Any]:
        """The row as it is written."""
        return asdict(self)


@dataclass(frozen=True)
class Ranked:
    """The variants of one layer: what each cost says of them, and their measured speeds."""

    costs: dict[str, list[Any]]
    speeds: list[float]


def authors(folder: Path) -> list[Row]:
    """The study on the measurements of PolyScientist's authors."""
    found, movement = read(folder), Movement()
    rows: list[Row] = []
    for threads in sorted({v.threads for v in found}):
        of_threads = [v for v in found if v.threads == threads]
        layers = []
        for layer in sorted({v.layer for v in of_threads}):
            variants = [v for v in of_threads if v.layer == layer]
            costs: dict[str, list[Any]] = {
                "random": [0] * len(variants),
                "working sets": [published(v) for v in variants],
                "movement": [round(movement(v), 3) for v in variants],
            }
            layers.append(Ranked(costs, [v.gflops for v in variants]))
        rows += summary("authors", threads, layers)
    return rows


def here(layer: Layer, budget: float) -> Ranked:
    """Measure variants of a layer on this machine, on one thread."""
    target, c = Target.host(), layer.convolution(1)
    f = lower(c)
    rankings = {cost: Ranking(f, machine_of(target), cost) for cost in ("movement", "working sets")}
    everything = [choice.variant for choice in rankings["movement"].choices]
    preferred = [each.variant for r in rankings.values() for each in r.choices[:3]]
    others = random.Random(layer.name).sample(everything, min(VARIANTS, len(everything)))
    chosen = list(dict.fromkeys((*preferred, *others)))
    made = np.random.default_rng(0)
    x = made.standard_normal((1, *c.image, c.channels), np.float32)
    params = {"w": made.standard_normal(weight_shape(c), np.float32)}
    shape = (1, *c.out, c.filters)

    def runner(v: Variant) -> Callable[[], Any]:
        kernel = Kernel(finished(f, schedule_of(f, v, target, 1, False)), target, params)
        return lambda: kernel.run((x,), None, shape)

    times = in_turns({v: runner(v) for v in chosen}, budget)
    costs: dict[str, list[Any]] = {"random": [0] * len(chosen)}
    costs |= {name: [r.cost(v) for v in chosen] for name, r in rankings.items()}
    return Ranked(costs, [c.flops / min(times[v]) / 1e9 for v in chosen])


def summary(data: str, threads: int, layers: Sequence[Ranked]) -> Iterator[Row]:
    """A row for each cost."""
    for cost in layers[0].costs:
        given = [(each.costs[cost], each.speeds) for each in layers]
        yield Row(
            data,
            threads,
            cost,
            len(layers),
            sum(len(each.speeds) for each in layers),
            geometric_mean(expected_best(costs, speeds, 1) / max(speeds) for costs, speeds in given),
            geometric_mean(expected_best(costs, speeds, 3) / max(speeds) for costs, speeds in given),
            fmean(spearman(costs, speeds) for costs, speeds in given),
        )


def expected_best(costs: Sequence[Any], speeds: Sequence[float], count: int) -> float:
    """The speed of the fastest of the `count` cheapest, on average over all ways to choose among equals."""
    edge = sorted(costs)[min(count, len(costs)) - 1]
    sure = [speed for cost, speed in zip(costs, speeds, strict=True) if cost < edge]
    least = max(sure, default=0.0)
    equal = sorted(max(least, speed) for cost, speed in zip(costs, speeds, strict=True) if cost == edge)
    taken = min(count, len(costs)) - len(sure)
    ways = comb(len(equal), taken)
    return sum(speed * comb(place, taken - 1) for place, speed in enumerate(equal)) / ways


def spearman(costs: Sequence[Any], speeds: Sequence[float]) -> float:
    """Correlation of the ranks by cost and by time; equals have the mean of their ranks, and 0 where all are equal."""
    x, y = _ranks(costs), _ranks([-speed for speed in speeds])
    dx, dy = x - x.mean(), y - y.mean()
    size = float(np.sqrt((dx**2).sum() * (dy**2).sum()))
    return float((dx * dy).sum()) / size if size else 0.0


def _ranks(values: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = np.empty(len(values))
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        ranks[order[at:end]] = (at + end - 1) / 2
        at = end
    return ranks
