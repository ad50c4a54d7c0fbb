"""Random ways to combine children that do not depend on their number: loops, folds, stacks, attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any

from loops import Combine, H

import cortex

PerChild = Callable[[Any, Any, Any, Any], Any]
"""From the node, the weights, a value per node and a child's state to a value for that child."""


def random_combine(rng: Random) -> Combine:
    """One to three reductions over children, each of which may use the ones before it."""
    steps = [_random_reduction(rng) for _ in range(rng.randint(1, 3))]

    def combine(node: Any, w: Any, states: list[Any]) -> Any:
        s = w.E[node.word]
        for step in steps:
            s = cortex.tanh(step(node, w, s, states))
        return s

    return combine


def _random_per_child(rng: Random) -> PerChild:
    chosen = rng.sample(sorted(PER_CHILD), rng.randint(1, 3))

    def per_child(node: Any, w: Any, s: Any, h: Any) -> Any:
        for name in chosen:
            h = PER_CHILD[name](node, w, s, h)
        return h

    return per_child


PER_CHILD: dict[str, PerChild] = {
    "product": lambda node, w, s, h: w.U @ h,
    "affine": lambda node, w, s, h: cortex.tanh(w.U @ h + w.b),
    "gate": lambda node, w, s, h: cortex.sigmoid(w.U @ h + s) * h,
    "scaled": lambda node, w, s, h: 0.5 * h,
    "beside": lambda node, w, s, h: cortex.concat([s, h]) @ w.V,
    "norm": lambda node, w, s, h: cortex.layer_norm(h),
    "turned": lambda node, w, s, h: cortex.concat([h[2:], h[:2]]),
    "clipped": lambda node, w, s, h: cortex.where(h > 0.2, h, s),
}


def _random_reduction(rng: Random) -> Callable[[Any, Any, Any, list[Any]], Any]:
    per_child, over = _random_per_child(rng), REDUCTIONS[rng.choice(sorted(REDUCTIONS))]

    def step(node: Any, w: Any, s: Any, states: list[Any]) -> Any:
        return over(w, s, [per_child(node, w, s, h) for h in states])

    return step


def _stacked(xs: list[Any]) -> Any:
    return cortex.stack(xs)


def _attention(scores: Any, values: Any) -> Any:
    return cortex.softmax(scores, axis=0) @ values


REDUCTIONS: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "left fold": lambda w, s, xs: reduce(lambda a, x: a + x, xs),
    "from zeros": lambda w, s, xs: reduce(lambda a, x: a + x, xs, cortex.zeros(H)),
    "from a value": lambda w, s, xs: reduce(lambda a, x: x + a, xs, s),
    "python's sum": lambda w, s, xs: sum(xs),
    "reversed": lambda w, s, xs: sum(reversed(xs)),
    "with a bias each": lambda w, s, xs: reduce(lambda a, x: a + w.U @ x + w.b, xs, cortex.zeros(H)),
    "differences": lambda w, s, xs: reduce(lambda a, x: a - x, xs, s),
    "two at once": lambda w, s, xs: reduce(lambda a, x: a + x + x * s, xs, w.b),
    "mean": lambda w, s, xs: sum(xs) / len(xs),
    "times one over n": lambda w, s, xs: sum(xs) * (1.0 / len(xs)),
    "over the root of n": lambda w, s, xs: sum(xs) / len(xs) ** 0.5,
    "largest": lambda w, s, xs: reduce(cortex.maximum, xs),
    "smallest of a value": lambda w, s, xs: reduce(cortex.minimum, xs, s),
    "largest and sum": lambda w, s, xs: reduce(cortex.maximum, xs) * sum(xs),
    "stack and sum": lambda w, s, xs: _stacked(xs).sum(axis=0),
    "stack and mean": lambda w, s, xs: _stacked(xs).mean(axis=0),
    "stack and max": lambda w, s, xs: cortex.tanh(_stacked(xs) @ w.U + s).max(axis=0),
    "stack last": lambda w, s, xs: cortex.stack(xs, axis=-1).sum(axis=-1),
    "flat and reshaped": lambda w, s, xs: (cortex.concat(xs).reshape(len(xs), H) @ w.U).sum(axis=0),
    "rows": lambda w, s, xs: cortex.concat([x.reshape(1, H) for x in xs]).sum(axis=0),
    "beside the node": lambda w, s, xs: cortex.tanh(
        cortex.concat([_stacked(xs), cortex.stack([s] * len(xs))], axis=1) @ w.V
    ).sum(axis=0),
    "attention": lambda w, s, xs: _attention(_stacked(xs) @ w.q, _stacked(xs)),
    "attention of the node": lambda w, s, xs: _attention(cortex.tanh(_stacked(xs) @ w.U) @ s, _stacked(xs)),
    "attention with the node": lambda w, s, xs: _attention(_stacked([s, *xs]) @ w.q, _stacked([s, *xs])),
    "weighted rows": lambda w, s, xs: (cortex.softmax(_stacked(xs) @ w.q, axis=0)[:, None] * _stacked(xs)).sum(axis=0),
    "heads": lambda w, s, xs: cortex.einsum(
        "nh,nhd->hd",
        cortex.softmax(cortex.einsum("nhd,hd->nh", _stacked(xs).reshape(len(xs), 2, 2), w.q.reshape(2, 2)), axis=0),
        _stacked(xs).reshape(len(xs), 2, 2),
    ).reshape(H),
    "every child with the sum": lambda w, s, xs: sum(cortex.tanh(x + sum(xs)) for x in xs),
}
