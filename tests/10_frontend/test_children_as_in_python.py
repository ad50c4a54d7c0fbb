"""Comprehensions, generators and loops over children mean what they mean in Python: each model is run by NumPy too."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node, evaluate

import cortex
from cortex.frontend.trace import Trace

RNG = np.random.default_rng(0)
WEIGHTS = {
    "b": RNG.normal(size=3), "q": RNG.normal(size=3), "U": RNG.normal(size=(3, 3)) / 2,
    "emb": RNG.normal(size=(5, 3)), "P": RNG.normal(size=(12, 3, 3)) / 2, "W": RNG.normal(size=(3, 6)) / 2,
}  # fmt: skip


def node(*children: Any, tag: str = "a", word: int = 1, cost: float = 0.5) -> Node:
    return Node(children=list(children), tag=tag, word=word, cost=cost)


def trees() -> list[Node]:
    """Nodes of one to seven children, of two tags, on two levels."""
    leaves = [node(tag="ab"[i % 2], word=i % 5, cost=float(i % 4)) for i in range(9)]
    wide = [node(*leaves[:n], tag="b", word=n % 5, cost=n) for n in (1, 2, 3, 4, 7)]
    return [*wide, node(wide[2], *leaves[3:5], wide[0], cost=2.0), node(wide[1], wide[1], word=3)]


class Numpy:
    """What the functions of Cortex mean."""

    def sum(self, items: Any) -> Any:
        return np.sum(list(items), axis=0)

    def mean(self, items: Any) -> Any:
        return np.mean(list(items), axis=0)

    def max(self, items: Any) -> Any:
        return np.max(list(items), axis=0)

    def softmax(self, items: Any) -> Any:
        powers = np.exp(list(items))
        return list(powers / powers.sum(axis=0))

    def concat(self, items: Any) -> Any:
        return np.concatenate(list(items))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)

    def zeros(self, size: int) -> Any:
        return np.zeros(size)

    tanh = staticmethod(np.tanh)


CASES: list[Callable[..., Any]] = []


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES.append(function)
    return function


# Helpers that get the list.


def average(c: Any, xs: Any) -> Any:
    return c.sum(xs) / len(xs)


@case
def helper_divides_by_length(c: Any, f: Any, n: Any, w: Any) -> Any:
    return average(c, [f(k) for k in n.children])


@case
def helper_counts(c: Any, f: Any, n: Any, w: Any) -> Any:
    def total(xs: Any, scale: Any = 1.0) -> Any:
        count = 0
        for _ in xs:
            count += 1
        return c.sum(xs) * count * scale

    return total([f(k) for k in n.children]) + total(tuple(f(k) for k in n.children), scale=0.5)


@case
def helper_treats_many_specially(c: Any, f: Any, n: Any, w: Any) -> Any:
    def squeezed(xs: Any) -> Any:
        return c.sum(xs) if len(xs) < 4 else c.max(xs)

    return squeezed([f(k) for k in n.children])


@case
def helper_treats_three_specially(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return c.sum(hs) * 2 if len(hs) == 3 else c.sum(hs)


@case
def first_and_last(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return hs[0] - 2 * hs[-1]


@case
def slices(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return c.sum(hs[:1]) + 3 * c.sum(hs[len(hs) // 2 :]) + c.sum(h * i for i, h in enumerate(hs[::-1]))


@case
def two_joined(c: Any, f: Any, n: Any, w: Any) -> Any:
    return w.W @ c.concat(([f(k) for k in n.children] * 2)[:2])


# Counting and numbering.


@case
def counter_in_the_generator(c: Any, f: Any, n: Any, w: Any) -> Any:
    seen: list[int] = []

    def noted(x: Any) -> Any:
        seen.append(1)
        return x

    return c.sum(noted(f(k)) for k in n.children) * len(seen)


@case
def nonlocal_counter(c: Any, f: Any, n: Any, w: Any) -> Any:
    count = 0

    def scaled(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count

    return c.sum([scaled(f(k)) for k in n.children])


@case
def itertools_counter(c: Any, f: Any, n: Any, w: Any) -> Any:
    number = itertools.count(1)
    return c.sum(f(k) / next(number) for k in n.children)


@case
def counted_in_a_for(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    count = 0
    for _ in hs:
        count += 1
    return c.sum(hs) / count


@case
def numbered(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(w.P[i] @ h for i, h in enumerate([f(k) for k in n.children]))


@case
def walrus(c: Any, f: Any, n: Any, w: Any) -> Any:
    last = None
    total = c.sum([(last := f(k)) for k in n.children])
    return total - 2 * last


@case
def walrus_of_the_list(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(hs := [f(k) for k in n.children]) / (1 + len(hs))


@case
def dictionary(c: Any, f: Any, n: Any, w: Any) -> Any:
    found = {i: f(k) for i, k in enumerate(n.children)}
    return c.sum(found.values()) + len(found) * found[0]


@case
def list_of_children(c: Any, f: Any, n: Any, w: Any) -> Any:
    kids = [k for k in n.children]  # noqa: C416 - so may models be
    return c.sum(f(k) for k in kids) / len(kids)


# Iterators.


@case
def next_of_iterator(c: Any, f: Any, n: Any, w: Any) -> Any:
    it = iter([f(k) for k in n.children])
    return next(it) * 2 + c.sum([w.b, *it])


@case
def next_of_generator(c: Any, f: Any, n: Any, w: Any) -> Any:
    generator = (f(k) for k in n.children)
    first = next(generator)
    return first - c.sum([w.b, *generator])


@case
def star(c: Any, f: Any, n: Any, w: Any) -> Any:
    first, *others = [f(k) for k in n.children]
    return first + len(others) * w.b


@case
def yielding(c: Any, f: Any, n: Any, w: Any) -> Any:
    def with_previous() -> Any:
        previous = w.b
        for k in n.children:
            h = f(k)
            yield h * previous
            previous = h

    return c.sum(with_previous())


@case
def mapped(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(map(lambda k, i: f(k) * i, n.children, range(1, 9)))


@case
def reduced(c: Any, f: Any, n: Any, w: Any) -> Any:
    return functools.reduce(lambda x, y: x * 0.5 + y, [f(k) for k in n.children], w.b)


@case
def chained(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(itertools.chain((f(k) for k in n.children), [w.b], itertools.islice((f(k) for k in n.children), 2)))


@case
def accumulated(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(itertools.accumulate([f(k) for k in n.children], lambda x, y: x + y))


@case
def neighbours(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return w.b + c.sum([w.b, *(x * y for x, y in itertools.pairwise(hs))])


@case
def reversed_numbers(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(h * i for i, h in enumerate(reversed([f(k) for k in n.children])))


@case
def two_at_a_time(c: Any, f: Any, n: Any, w: Any) -> Any:
    it = iter(n.children)
    return w.b + c.sum([w.q, *(f(x) * f(y) for x, y in zip(it, it, strict=False))])


# Built-in functions, truth.


@case
def built_in_sum(c: Any, f: Any, n: Any, w: Any) -> Any:
    return sum(f(k) for k in n.children) + sum(1 for k in n.children) * w.b


@case
def built_in_max(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for k in n.children) * max(len(k.tag) + i for i, k in enumerate(n.children))


@case
def any_and_all(c: Any, f: Any, n: Any, w: Any) -> Any:
    some = any(k.tag == "b" for k in n.children)
    every = all([k.tag == "a" for k in n.children])  # noqa: C419 - so may models be
    return c.sum(f(k) for k in n.children) * (2 if some else 3) * (5 if every else 7)


@case
def truth_of_the_list(c: Any, f: Any, n: Any, w: Any) -> Any:
    others = [f(k) for k in n.children][1:]
    return c.sum(others) if others else w.b


@case
def filtered(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum([w.b, *(f(k) for k in n.children if k.tag == "a")])


@case
def filtered_by_leaves(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum([w.b, *filter(lambda h: h is not None, (None if k.is_leaf else f(k) for k in n.children))])


@case
def filtered_by_numbers(c: Any, f: Any, n: Any, w: Any) -> Any:
    count = sum(k.cost > 1 for k in n.children)
    return c.sum([w.b, *(f(k) for k in n.children if k.cost > 1)]) * (count + 1)


@case
def filtered_by_position(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for i, k in enumerate(n.children) if i % 2 == 0)


@case
def sorted_children(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(h * i for i, h in enumerate([f(k) for k in sorted(n.children, key=lambda k: int(k.word))]))


# Pairs, constants, one value for all.


@case
def pairs(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(x) * f(y) for x in n.children for y in n.children)


@case
def nested(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum([f(x) * c.sum([f(y) for y in n.children]) for x in n.children])


@case
def all_others(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return c.sum(c.sum([w.b, *(y for j, y in enumerate(hs) if j != i)]) * x for i, x in enumerate(hs))


@case
def constants(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum([w.b for k in n.children]) + c.sum(w.q for _ in n.children) + len([1 for _ in n.children]) * w.b


@case
def softmax_numbered(c: Any, f: Any, n: Any, w: Any) -> Any:
    a = c.softmax(w.q @ f(k) for k in n.children)
    return c.sum(a_k * f(k) for a_k, k in zip(a, n.children, strict=True)) + a[0] * len(a) * w.b


@case
def scaled_by_a_field(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) * k.cost + w.emb[k.word] for k in n.children) / len([k.word for k in n.children])


class Weights:
    def __init__(self, weights: dict[str, Any]) -> None:
        self.__dict__.update(weights)


def model_of(body: Callable[..., Any]) -> Any:
    @cortex.model
    def f(node: Any, w: Any) -> Any:
        if node.is_leaf:
            return w.emb[node.word]
        return cortex.tanh(body(cortex, lambda k: f(k, w), node, w))

    return f


def value(body: Callable[..., Any], at: Any) -> Any:
    """What plain Python and NumPy give."""
    if not at.children:
        return WEIGHTS["emb"][at.word]
    for each in at.children:
        each.is_leaf = not each.children
    return np.tanh(body(Numpy(), lambda k: value(body, k), at, Weights(WEIGHTS)))


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_as_in_python(body: Callable[..., Any]) -> None:
    trace = Trace(model_of(body), WEIGHTS)
    trace.explore()
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], value(body, tree), rtol=1e-5, atol=1e-6)
    for tree in trees():  # all kinds are known now
        np.testing.assert_allclose(evaluate(trace, tree)["out"], value(body, tree), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("has_examples", [False, True])
def test_compiled(has_examples: bool) -> None:
    """The same through the linearizer, which looks up which numbers of children the kinds have been checked for."""
    for body in (helper_divides_by_length, helper_treats_three_specially, counter_in_the_generator, filtered):
        fast = cortex.compile(model_of(body), WEIGHTS, examples=trees()[:2] if has_examples else None)
        for tree in trees():
            np.testing.assert_allclose(fast(tree).out, value(body, tree), rtol=1e-5, atol=1e-6)


# The same expression for every child stays one kind, whatever the number of children.


def kept_sum(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(f(k) for k in n.children) + c.sum([w.U @ f(k) for k in n.children])


def kept_mean_and_extremes(c: Any, f: Any, n: Any, w: Any) -> Any:
    hs = [f(k) for k in n.children]
    return c.mean(hs) + c.max(hs) * c.sum(w.b for _ in n.children)


def kept_attention(c: Any, f: Any, n: Any, w: Any) -> Any:
    a = c.softmax(w.q @ f(k) for k in n.children)
    return c.sum(a_k * f(k) for a_k, k in zip(a, n.children, strict=True))


def kept_fields(c: Any, f: Any, n: Any, w: Any) -> Any:
    return c.sum(c.where((k.cost > 1) & (k.cost < 3), f(k) * k.cost, w.emb[k.word]) for k in n.children)


def kept_helper(c: Any, f: Any, n: Any, w: Any) -> Any:
    return average(c, [f(k) for k in n.children]) + sum(f(k) for k in n.children)


KEPT = [kept_sum, kept_mean_and_extremes, kept_attention, kept_fields, kept_helper]


@pytest.mark.parametrize("body", KEPT, ids=lambda body: body.__name__)
def test_one_kind_of_any_arity(body: Callable[..., Any]) -> None:
    trace = Trace(model_of(body), WEIGHTS)
    trace.explore()
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], value(body, tree), rtol=1e-5, atol=1e-6)
    assert [kind.name for kind in trace.model().kinds] == ["leaf", "inner"]


# No leaf has a branch of its own: a reduction over no children is 0, and a base case may be said in other words.


def test_an_empty_list_is_the_base_case() -> None:
    @cortex.model
    def largest(node: Any, w: Any) -> Any:
        hs = [largest(k, w) for k in node.children]
        if not hs:
            return w.emb[node.word]
        return cortex.max(hs) * len(hs)

    def expected(at: Node) -> Any:
        hs = [expected(k) for k in at.children]
        return np.max(hs, axis=0) * len(hs) if hs else WEIGHTS["emb"][at.word]

    trace = Trace(largest, WEIGHTS)
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], expected(tree), rtol=1e-6)


@pytest.mark.parametrize("collect", [list, tuple, iter])
def test_a_collection_of_no_children_is_reduced_to_zero(collect: Callable[..., Any]) -> None:
    @cortex.model
    def total(node: Any, w: Any) -> Any:
        return cortex.tanh(w.emb[node.word] + w.U @ cortex.sum(collect([total(k, w) for k in node.children])))

    def expected(at: Node) -> Any:
        below = sum((expected(k) for k in at.children), np.zeros(3))
        return np.tanh(WEIGHTS["emb"][at.word] + WEIGHTS["U"] @ below)

    trace = Trace(total, WEIGHTS)
    for tree in trees():
        np.testing.assert_allclose(evaluate(trace, tree)["out"], expected(tree), rtol=1e-5)
    assert len(trace.model().kinds) == 1


def test_a_number_of_children_is_checked_when_it_is_met() -> None:
    """A guess that is right for the numbers it was confirmed for need not be so for others."""

    def first_six(xs: list[Any]) -> Any:
        return cortex.sum(xs[:6])

    @cortex.model
    def cut(node: Any, w: Any) -> Any:
        return w.b if node.is_leaf else first_six([cut(k, w) for k in node.children])

    fast = cortex.compile(cut, {"b": np.ones(2)})
    for n in (2, 5, 6, 7, 9, 70, 3):
        np.testing.assert_array_equal(fast(node(*[node()] * n)).out, np.full(2, min(n, 6)))
    np.testing.assert_array_equal(fast([node(*[node()] * n) for n in (8, 4, 300)]).out[:, 0], [6, 4, 6])
