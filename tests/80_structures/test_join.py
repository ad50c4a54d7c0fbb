"""Forests joined into one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models_of_packages import WEIGHTS, words_everywhere

import cortex
from cortex import Forest
from cortex.errors import StructureError
from cortex.structures import join


def test_lists_fields_and_roots() -> None:
    first = Forest.from_parents([-1, 0, 0], {"word": [1, 2, 3], "x": np.ones((3, 2)), "op": ["a", "b", "c"]})
    second = Forest.from_children([0, 0, 1], [0], {"word": [4, 5], "x": np.zeros((2, 2)), "op": ["d", "e"]})
    both = join([first, second])
    assert both.num_nodes == 5
    assert both.roots.tolist() == [0, 4]
    assert [a.tolist() for a in both.lists["children"]] == [[0, 2, 2, 2, 2, 3], [1, 2, 3]]
    assert both.fields["word"].tolist() == [1, 2, 3, 4, 5]  # type: ignore[union-attr]
    assert both.fields["x"].shape == (5, 2)  # type: ignore[union-attr]
    assert both.fields["op"] == ("a", "b", "c", "d", "e")
    fast = cortex.compile(words_everywhere, WEIGHTS)
    np.testing.assert_array_equal(fast(both).nodes.out, np.concatenate([fast(f).nodes.out for f in (first, second)]))


def test_slots_and_fields_of_different_types() -> None:
    first = Forest.from_slots({"left": [1, -1]}, {"n": [1, 2], "m": [1, 2]})
    second = Forest.from_slots({"left": [-1, 0]}, {"n": [0.5, 2.0], "m": ["a", None]})
    both = join([first, second])
    assert both.slots["left"].tolist() == [1, -1, -1, 2]
    assert both.fields["n"].tolist() == [1.0, 2.0, 0.5, 2.0]  # type: ignore[union-attr]
    assert both.fields["m"] == (1, 2, "a", None)


def test_errors_name_the_node_in_its_own_forest() -> None:
    forests = [Forest.from_parents([-1, 0], {"word": [1, word]}) for word in (2, 99)]
    fast = cortex.compile(words_everywhere, WEIGHTS)
    with pytest.raises(StructureError, match=r"^node 1 of forest 1: field 'word' is 99"):
        fast(join(forests))


@pytest.mark.parametrize(
    ("forests", "message"),
    [
        ([], "there is nothing to join"),
        (
            [Forest.from_parents([-1], {"word": [1]}), Forest.from_parents([-1], {"w": [1]})],
            "forest 1 has the fields ['w'], and forest 0 has ['word']",
        ),
        (
            [Forest.from_parents([-1]), Forest.from_parents([-1], relation="kids")],
            "forest 1 has the lists ['kids'], and forest 0 has ['children']",
        ),
    ],
)
def test_what_cannot_be_joined(forests: Any, message: str) -> None:
    with pytest.raises(StructureError) as caught:
        join(forests)
    assert message in str(caught.value)
