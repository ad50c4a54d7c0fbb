"""Reductions over an empty part of the children are 0, of the shape that a value would have; each against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

RNG = np.random.default_rng(0)
WEIGHTS = {
    "b": RNG.normal(size=4), "U": RNG.normal(size=(4, 4)) / 4, "P": RNG.normal(size=(9, 4, 4)) / 4,
    "emb": RNG.normal(size=(9, 4)), "q": RNG.normal(size=4),
}  # fmt: skip


def node(*children: Any, word: int = 1, args: tuple[Any, ...] = ()) -> Any:
    return SimpleNamespace(children=list(children), args=list(args), word=word)


def trees() -> list[Any]:
    """Nodes with none to four children and none to two arguments, small ones first."""
    found = [node(word=2)]
    for n in (1, 2, 0, 4, 3):
        below = (found * 3)[-n:] if n else []
        found.append(node(*below, word=n, args=tuple(found[: n % 3])))
    return found


class Numpy:
    """What the functions of Cortex mean, for reference."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def of(self, items: Iterable[Any], fn: Callable[..., Any]) -> Any:
        values = list(items)
        return fn(values, axis=0) if values else np.zeros(self.shape)

    def sum(self, items: Any) -> Any:
        return self.of(items, np.sum)

    def max(self, items: Any) -> Any:
        return self.of(items, np.max)

    def mean(self, items: Any) -> Any:
        return self.of(items, np.mean)

    def softmax(self, items: Any) -> Any:
        powers = [np.exp(x) for x in items]
        return [p / sum(powers) for p in powers]

    def concat(self, items: Any) -> Any:
        return np.concatenate(list(items))

    tanh = staticmethod(np.tanh)


def tail(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for k in n.children[1:])


def tail_of_tail(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for k in n.children[1:][1:]) + c.sum(f(k) for k in n.children[2:] + n.args[1:])


def matrix_of_tail(c: Any, f: Any, n: Any, w: Any) -> Any:
    return w.U @ c.max(f(k) for k in n.children[2:]) + c.mean(w.emb[k.word] for k in n.children[:-1])


def pairs(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(x) * f(y) for x, y in zip(n.children, n.children[1:], strict=False))


def numbered(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(w.P[i] @ f(k) for i, k in enumerate(n.children))


def two_lists(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(x) * w.emb[y.word] for x, y in zip(n.children, n.args, strict=False))


def backwards(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(w.P[i] @ f(k) for i, k in enumerate(reversed(n.children)))


def attention(c: Any, f: Any, n: Any, w: Any) -> Any:
    shares = c.softmax(w.q @ f(k) for k in n.children[1:])
    return c.sum(a * f(k) for a, k in zip(shares, n.children[1:], strict=True))


def several(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for k in chain(n.children[3:], n.args[1:], n.children[:1]))


def by_map(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(map(f, n.children[1:])) + c.sum(x for x in (2 * f(k) for k in n.children[1:]))


def all_pairs(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(x) * f(y) * i for x in n.children[1:] for y in n.args[1:] for i in range(3))


def scalars(c: Any, f: Any, n: Any, w: Any) -> Any:
    return w.b * c.sum(w.q @ f(k) for k in n.children[1:])


# Nobody but the reduction may see an item that is not there.


def collected(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) * len(tuple(f(j) for j in n.children[1:])) for k in n.children[:1])


def collected_in_a_list(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) * len([j for j in n.children[1:]]) for k in n.children[:1])  # noqa: C416 - so may models be


def counted(c: Any, f: Any, n: Any, w: Any) -> Any:
    def times(k: Any) -> Any:
        found = f(k)
        for j in n.children[1:]:
            found = found + f(j)
        return found

    return c.sum(times(k) for k in n.children[:1])


def joined(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(c.concat(chain([f(k)[:4]], (f(j) for j in n.children[1:])))[:4] for k in n.children[:1])


def nested(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) * c.sum(f(j) for j in n.children[1:]) + f(k) for k in n.children[:1])


CASES = [
    tail, tail_of_tail, matrix_of_tail, pairs, numbered, two_lists, backwards, attention, several, by_map, all_pairs,
    scalars, collected, collected_in_a_list, counted, joined, nested,
]  # fmt: skip


@pytest.mark.parametrize("has_base", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case: Callable[..., Any], has_base: bool) -> None:
    @cortex.model
    def f(node: Any, w: Any) -> Any:
        if has_base and node.is_leaf:
            return w.b
        return cortex.tanh(w.b + case(cortex, lambda k: f(k, w), node, w))

    def value(node: Any) -> Any:
        if has_base and not (node.children or (node.args and case in (tail_of_tail, two_lists, several, all_pairs))):
            return WEIGHTS["b"]
        c = Numpy(() if case is scalars else (4,))
        return np.tanh(WEIGHTS["b"] + case(c, value, node, SimpleNamespace(**WEIGHTS)))

    fast = cortex.compile(f, WEIGHTS)
    expected = np.stack([value(tree) for tree in trees()])
    np.testing.assert_allclose(fast(trees()).out, expected, rtol=1e-5, atol=1e-6)
    one_by_one = cortex.compile(f, WEIGHTS)
    for tree, row in zip(reversed(trees()), expected[::-1], strict=True):
        np.testing.assert_allclose(one_by_one(tree).out, row, rtol=1e-5, atol=1e-6)
