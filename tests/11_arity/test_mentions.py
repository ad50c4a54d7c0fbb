"""Large numbers of children: told apart where the code knows a number to tell them by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loops import WEIGHTS, model_of, star

import cortex
from cortex.frontend.arity.mentions import EXACT, NEAR, Mentions, mentions


def codes(function: Any) -> list[Any]:
    return [function.__code__]


def test_numbers_of_the_code_and_of_what_it_reads() -> None:
    def told_apart(node: Any, self: Any) -> Any:
        return node.children[: self.most] if len(node.children) > 5000 else node.children

    found = mentions(codes(told_apart), [{"most": 900, "unread": 7000}], [None, "text", 3.5e3, True])
    assert found == Mentions((900, 3500, 5000))
    assert found.most == 5000 + NEAR


def test_operators_that_tell_all_numbers_apart() -> None:
    def by_remainder(node: Any) -> Any:
        return len(node.children) % 100

    def by_size(x: Any, node: Any) -> Any:
        return x.size(1) // 3, len(node.children)

    def of_no_count(node: Any) -> Any:
        return node.x % 100

    assert mentions(codes(by_remainder), []).periodic is not None
    assert mentions(codes(by_size), []).periodic is None
    assert mentions(codes(of_no_count), []).periodic is None


def test_what_is_traced_for_a_number() -> None:
    found = Mentions((900,))
    counts = (EXACT - 1, EXACT + 1, 899, 900, 903, 900 + NEAR, 10**6)
    assert [found.alike(n) for n in counts] == [EXACT - 1, EXACT, EXACT, 900, 903, 900 + NEAR, 900 + NEAR]


SLICE = 300


def first_ones(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states[:SLICE])


def more_than(node: Any, w: Any, states: list[Any]) -> Any:
    return sum(states) * (w.b if len(states) > SLICE else 1.0)


@pytest.mark.parametrize("combine", [first_ones, more_than])
def test_right_or_refused(combine: Any) -> None:
    fast = cortex.compile(model_of(combine), WEIGHTS, examples=[star(2)])
    leaves = star(299).children
    np.testing.assert_allclose(fast(star(299)).out, np.sum([fast(leaf).out for leaf in leaves], 0), rtol=1e-3)
    if combine is more_than:
        expected = np.sum([fast(leaf).out for leaf in star(400).children], 0) * WEIGHTS["b"]
        np.testing.assert_allclose(fast(star(400)).out, expected, rtol=1e-3)
        return
    with pytest.raises(cortex.ModelError, match="one by one"):
        fast(star(400))
