"""`out=` of a compiled model that shares memory with what the call reads: fields, weights, other requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cortex
from cortex import Forest

N, SIZE = 6, 4
U = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(N, SIZE)).astype(np.float32)
PARENTS = np.array([-1, -1, 0, 0, 1, 1])


@cortex.model
def tree(node: Any, w: Any) -> Any:
    return cortex.tanh(node.x + w.U @ cortex.sum(tree(k, w) for k in node.children))


@pytest.fixture(scope="module")
def fast() -> Any:
    return cortex.compile(tree, {"U": U.copy()})


def test_out_is_part_of_a_field(fast: Any) -> None:
    want = fast(Forest.from_parents(PARENTS, fields={"x": X})).out
    for at in range(N - 1):
        x = X.copy()
        forest = Forest.from_parents(PARENTS, fields={"x": x})
        np.testing.assert_array_equal(fast(forest, out=x[at : at + 2]).out, want)
        other = X.copy()
        forest = Forest.from_parents(PARENTS, fields={"x": other})
        np.testing.assert_array_equal(fast(forest, out=other[::-3]).out, want)  # not contiguous


def test_out_is_the_array_of_a_node(fast: Any) -> None:
    class Node:
        def __init__(self, x: Any, *children: Any) -> None:
            self.x, self.children = x, list(children)

    want = fast(Node(X[0], Node(X[1]), Node(X[2]))).out.copy()
    for at in range(3):
        x = X.copy()
        top = Node(x[0], Node(x[1]), Node(x[2]))
        np.testing.assert_array_equal(fast(top, out=x[at]).out, want)


def test_out_is_a_weight() -> None:
    weight = U.copy()
    fast = cortex.compile(tree, {"U": weight})
    forest = Forest.from_parents(PARENTS, fields={"x": X})
    want = fast(forest).out.copy()
    np.testing.assert_array_equal(fast(forest, out=weight[:2]).out, want)
    np.testing.assert_array_equal(fast(forest).out, want)


def test_out_is_a_field_of_a_bound_request(fast: Any) -> None:
    forest = Forest.from_parents(PARENTS, fields={"x": X})
    first = fast.bind(forest)
    want = first().out.copy()
    second = fast.bind(forest, out=first.fields["x"][2:4])
    np.testing.assert_array_equal(second().out, want)
    np.testing.assert_array_equal(second().out, want)
    changed = X.copy()
    changed[2:4] = want
    np.testing.assert_array_equal(first().out, fast(Forest.from_parents(PARENTS, fields={"x": changed})).out)
