"""A kind of any arity is used for no number of children before it has been checked for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import thread_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from loops import WEIGHTS, Combine, Node, Trace, assert_same, checked, is_per_arity, model_of, star, unmerged

import cortex
from cortex import _native
from cortex.errors import CortexError
from cortex.frontend.arity.lengths import ENTRIES, CheckedLengths
from cortex.frontend.arity.mentions import EXACT, NEAR
from cortex.recursion.dedup import Dedup
from cortex.recursion.fix_arity import FixArity
from cortex.recursion.unroll import UnrollRecursion

HERE = SimpleNamespace(k=0)
"""Where models read numbers that their code does not mention."""


def eager(combine: Combine, node: Node) -> Any:
    """What a model of loops.py computes, by plain recursion in NumPy."""
    w = SimpleNamespace(**{name: np.asarray(a, np.float64) for name, a in WEIGHTS.items()})
    if not node.children:
        return np.tanh(w.E[node.word])
    return combine(node, w, [eager(combine, child) for child in node.children])


def of_arities(rng: Random, arities: list[int]) -> Node:
    """A random tree in which the inner nodes have these numbers of children, in random order."""
    arities = rng.sample(arities, len(arities))
    root = star(arities[0])
    leaves = list(root.children)
    for arity in arities[1:]:
        at = leaves.pop(rng.randrange(len(leaves)))
        at.children = star(arity).children
        leaves += at.children
    return root


def special(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states) * w.b if len(states) == HERE.k else sum(states) / len(states)


def truncated(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states[: HERE.k]) * w.b


def after_many(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states) / len(states) if len(states) < HERE.k else w.b * 0.5


def by_remainder(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states) / len(states) if len(states) % 10 != HERE.k else w.b * sum(states)


def by_parity(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states) / len(states) if len(states) % 2 == HERE.k else w.b * sum(states)


@pytest.mark.parametrize("k", range(9, 41))
def test_a_number_that_the_code_does_not_mention(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", k)
    model, rng = model_of(special), Random(k)
    trace = Trace(model, WEIGHTS)
    trace.see([star(2)])
    for _ in range(2):
        assert_same(trace, model, of_arities(rng, [k, k - 1, k + 1, *(rng.randint(1, 45) for _ in range(3))]))
    own = [kind.name for kind in checked(trace).kinds if kind.name not in ("leaf", "inner")]
    assert own == [f"children_{k}"] or k == 13, "the pattern is looked for in a trace for 13, so that there is none"


@pytest.mark.parametrize(
    ("combine", "k", "arities"),
    [
        (special, 12, [11, 12, 13, 12, 2]),
        (truncated, 50, [49, 50, 51, 60, 3, 300]),
        (after_many, 40, [39, 40, 41, 5]),
        (by_remainder, 9, [9, 10, 19, 4, 29]),
        (by_parity, 1, [1, 2, 9, 10]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_compiled_as_plain_recursion(
    combine: Combine, k: int, arities: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HERE, "k", k)
    fast = cortex.compile(model_of(combine), WEIGHTS, examples=[star(3)])
    rng = Random(k)
    for root in [of_arities(rng, arities), of_arities(rng, arities), *map(star, arities)]:
        np.testing.assert_allclose(fast(root).out, eager(combine, root), rtol=2e-4, atol=2e-5)


def test_a_model_that_treats_the_largest_number_specially(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last number that is told apart from larger ones; its own kind does not grow with the number of children."""
    monkeypatch.setattr(HERE, "k", EXACT)
    fast = cortex.compile(model_of(special), WEIGHTS, examples=[star(2)])

    def check(arity: int) -> None:
        np.testing.assert_allclose(fast(star(arity)).out, eager(special, star(arity)), rtol=2e-4, atol=2e-5)

    for arity in (EXACT - 1, EXACT + 1, EXACT + NEAR + 100):
        check(arity)
    assert fast.compilations == 1
    for arity in (EXACT, EXACT - 1, EXACT + 1, 4 * EXACT, EXACT):
        check(arity)
    assert fast.compilations == 2
    assert max(len(kind.lets) for kind in fast.traced.kinds) < 20


def test_nothing_is_compiled_for_numbers_that_are_not_special() -> None:
    model = model_of(lambda node, w, states: sum(states) / len(states))
    fast = cortex.compile(model, WEIGHTS, examples=[star(2)])
    for arity in Random(0).sample(range(1, 301), 300):
        found = fast(star(arity)).out
        np.testing.assert_allclose(found, fast(star(arity).children).out.mean(0), rtol=1e-4, atol=1e-5)
    assert fast.compilations == 1


def test_many_new_numbers_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 23)
    model = model_of(special)
    fast = cortex.compile(model, WEIGHTS, examples=[star(2)])
    batch = [star(n) for n in range(1, 60)]
    found = fast(batch).out
    assert fast.compilations == 2
    for root, row in zip(batch, found, strict=True):
        np.testing.assert_allclose(row, eager(special, root), rtol=2e-4, atol=2e-5)


def test_many_special_numbers_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 40)
    fast = cortex.compile(model_of(after_many), WEIGHTS, examples=[star(2)])
    batch = [star(n) for n in range(36, 52)]
    for root, row in zip(batch, fast(batch).out, strict=True):
        np.testing.assert_allclose(row, eager(after_many, root), rtol=2e-4, atol=2e-5)
    assert fast.compilations == 2, "all are traced at once"


def test_very_many_children_are_checked_once() -> None:
    model = model_of(lambda node, w, states: sum(states) / len(states))
    trace = Trace(model, WEIGHTS)
    trace.see([star(2)])
    before = trace.checks
    for arity in (5000, 700, EXACT, EXACT + 1):
        assert not trace.see([star(arity)])
    assert trace.checks == before + 1


@pytest.mark.parametrize("first", [2, 100_000])
def test_a_star(first: int) -> None:
    model = model_of(lambda node, w, states: sum(states) / len(states))
    fast = cortex.compile(model, WEIGHTS, examples=[star(first)])
    root = star(100_000)
    start = thread_time()
    found = fast(root).out
    assert thread_time() - start < 5
    np.testing.assert_allclose(found, np.mean([eager(special, leaf) for leaf in root.children[:7]], 0), atol=1e-3)
    assert fast.compilations == 1


def test_two_lists_are_checked_for_both_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 10)

    @cortex.model
    def sides(node: Any, w: Any) -> Any:
        s = w.E[node.word]
        for child in node.left:
            s = s + w.U @ sides(child, w)
        for child in node.right:
            s = s + sides(child, w)
        return cortex.tanh(s * w.b if len(node.left) == HERE.k and len(node.right) == HERE.k + 1 else s)

    def node(left: int, right: int) -> Node:
        def leaves(n: int) -> list[Node]:
            return [Node(word=i % 7, left=[], right=[]) for i in range(n)]

        return Node(word=2, left=leaves(left), right=leaves(right))

    fast = cortex.compile(sides, WEIGHTS, examples=[node(2, 3)])
    for left, right in [(9, 11), (10, 12), (11, 10)]:
        root = node(left, right)
        np.testing.assert_allclose(fast(root).out, unmerged(sides, root)["out"], rtol=2e-4, atol=2e-5)
    assert fast.compilations == 1
    for left, right in [(10, 11), (10, 10), (11, 11), (10, 11), (100, 140)]:
        root = node(left, right)
        np.testing.assert_allclose(fast(root).out, unmerged(sides, root)["out"], rtol=2e-4, atol=2e-5)
    assert fast.compilations == 2


def test_children_that_are_asked_for_some_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 children one is asked: what it says decides, so these nodes have kinds of their own."""
    monkeypatch.setattr(HERE, "k", 20)

    def asking(node: Any, w: Any, states: list[Any]) -> Any:
        if len(states) == HERE.k and node.children[12].op == "q":
            return sum(states) * w.b
        return sum(states)

    fast = cortex.compile(model_of(asking), WEIGHTS, examples=[star(2)])
    other = star(20)
    other.children[12].op = "q"
    for root in (star(19), star(20), other, star(21)):
        np.testing.assert_allclose(fast(root).out, eager(asking, root), rtol=2e-4, atol=2e-5)


def test_threads_check_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 37)
    model = model_of(special)
    fast = cortex.compile(model, WEIGHTS, examples=[star(2)])

    def call(seed: int) -> None:
        rng = Random(seed)
        for _ in range(6):
            root = of_arities(rng, [rng.randint(1, 45), rng.randint(30, 40), 37])
            np.testing.assert_allclose(fast(root).out, eager(special, root), rtol=2e-4, atol=2e-5)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(call, seed % 4) for seed in range(8)]:
            done.result()
    assert fast.compilations == 2


def test_kinds_that_a_refused_request_has_shown_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 12)
    fast = cortex.compile(model_of(special), WEIGHTS, examples=[star(2)])
    wrong = star(3)
    wrong.children[1] = Node(word="no number", children=[])
    with pytest.raises(CortexError):
        fast([star(12), star(15), wrong])
    np.testing.assert_allclose(fast(star(12)).out, eager(special, star(12)), rtol=2e-4, atol=2e-5)


def test_the_linearizer_reports_a_node_of_each_number() -> None:
    model = model_of(lambda node, w, states: sum(states))
    fast = cortex.compile(model, WEIGHTS, examples=[star(2)])
    batch = [star(2), star(9), star(10), star(9), star(2)]
    with pytest.raises(_native.UnknownKind, match=r"structures\[1\]") as unknown:
        fast._require().linearizer.linearize(batch)
    assert unknown.value.node is batch[1]
    assert unknown.value.unchecked == [batch[1], batch[2]]
    fast(batch)
    fast._require().linearizer.linearize(batch)


def test_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 14)
    fast = cortex.compile(model_of(special), WEIGHTS, examples=[star(2)])
    for arity in (13, 14, 15):
        start = np.array([0, arity, *([arity] * arity)])
        words = np.array([1, *(i % 7 for i in range(arity))])
        forest = cortex.Forest.from_children(start, np.arange(1, arity + 1), {"word": words})
        np.testing.assert_allclose(fast(forest).out[0], eager(special, star(arity)), rtol=2e-4, atol=2e-5)
    assert fast.compilations == 2


@pytest.mark.parametrize(
    ("steps", "k"),
    [
        ((FixArity("inner", 2), FixArity("inner", 15)), 12),
        ((FixArity("inner", 2), UnrollRecursion()), 1000),  # a kind for 12 would have too many variants
        ((Dedup(),), 12),
    ],
    ids=str,
)
def test_steps_that_split_kinds(steps: tuple[Any, ...], k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", k)
    fast = cortex.compile(model_of(special), WEIGHTS, examples=[star(3)], recursion=steps)
    rng = Random(0)
    for arities in ([2, 15, 2, 2, 9], [2, 12, 2, 15, 13]):
        root = of_arities(rng, arities)
        np.testing.assert_allclose(fast(root).out, eager(special, root), rtol=2e-4, atol=2e-5)
    assert fast.compilations == (2 if k == 12 else 1)


def test_tables() -> None:
    one, three = CheckedLengths(("a",), frozenset()), CheckedLengths(("a", "b", "c"), frozenset())
    assert one.most == EXACT
    assert three.table.size <= ENTRIES
    one.add({"a": EXACT})
    assert {"a": EXACT + 7} in one
    assert {"a": EXACT - 1} not in one
    three.add({"a": 1, "b": 2, "c": 1000})
    assert {"a": 1, "b": 2, "c": three.most} in three
    assert {"a": 2, "b": 1, "c": 1000} not in three


def test_per_arity_where_the_remainder_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "k", 1)
    trace = Trace(model_of(by_parity), WEIGHTS)
    trace.see([star(3)])
    assert any(is_per_arity(kind) for kind in checked(trace).kinds)
