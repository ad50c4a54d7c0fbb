"""Which nodes a request has: those that the relations known by then lead to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import cortex

WEIGHTS = {"b": np.ones(2)}


@cortex.model
def by_size(node: Any, w: Any) -> Any:
    """Nodes of size 2 also use `extra`, which no exploration can know."""
    if int(node.size) == 2:
        return w.b if node.extra is None else by_size(node.extra, w) + w.b
    return w.b if node.next is None else by_size(node.next, w)


def leaf(size: int = 1) -> Any:
    return SimpleNamespace(size=size, next=None, extra=None)


def test_a_later_relation_widens_what_is_listed() -> None:
    first = SimpleNamespace(size=1, next=leaf(), extra=leaf())
    second = SimpleNamespace(size=2, next=None, extra=leaf())
    fast = cortex.compile(by_size, WEIGHTS)
    assert len(fast(first).nodes.out) == 2
    np.testing.assert_array_equal(fast(second).out, [2, 2])
    assert len(fast(first).nodes.out) == 3, "`extra` leads to children now"
    np.testing.assert_array_equal(fast(first).out, [1, 1])
    known = cortex.compile(by_size, WEIGHTS, examples=[first, second])
    assert [len(known(first).nodes.out) for _ in range(2)] == [3, 3]
