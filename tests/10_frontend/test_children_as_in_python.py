"""Comprehensions, generators and loops over children mean what they mean in Python: each model is run by NumPy too."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from children_meaning import WEIGHTS, average, model_of, trees, value
from frontend_meaning import evaluate

import cortex
from cortex.frontend.trace import Trace

CASES: list[Callable[..., Any]] = []


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES.append(function)
    return function


# Helpers that get the list.


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
