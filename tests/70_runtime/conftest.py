"""A straightforward linearizer in Python, and small things that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cortex import _native


class Node:
    """A node with any attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def leaf_or_inner(slots: list[str], lists: list[str], **more: Any) -> dict[str, Any]:
    """A spec with two kinds, leaves and others, and an integer field `word` that only leaves have."""
    spec = {
        "slots": slots,
        "lists": lists,
        "accessors": {},
        "num_kinds": 2,
        "tree": ("test", ("is_leaf", ()), {True: ("kind", 0), False: ("kind", 1)}),
        "int_fields": [("word", 1000)],
        "float_fields": [],
        "uses": [["word"], []],
        "needs": [[], []],
    }
    return spec | more


def linear_form(
    slots: dict[str, list[int]],
    lists: dict[str, list[list[int]]],
    kinds: list[int],
    num_kinds: int,
    roots: list[int],
) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The linear form of a graph in the user's order, as lower/linear_form.py words it."""
    n = len(kinds)
    below = [
        [s[v] for s in slots.values() if s[v] >= 0] + [c for each in lists.values() for c in each[v]] for v in range(n)
    ]
    heights = [-1] * n
    while -1 in heights:
        for v in range(n):
            if heights[v] < 0 and all(heights[c] >= 0 for c in below[v]):
                heights[v] = 1 + max((heights[c] for c in below[v]), default=-1)
    keys = sorted({(heights[v], kinds[v]) for v in range(n)})
    groups = [[v for v in range(n) if (heights[v], kinds[v]) == key] for key in keys]
    ids, start = [0] * n, n
    arrays: dict[str, list[int]] = {"group_start": [], "group_len": [], "group_kind": [k for _, k in keys]}
    for group in groups:
        start -= len(group)
        arrays["group_start"].append(start)
        arrays["group_len"].append(len(group))
        for i, v in enumerate(group):
            ids[v] = start + i
    node_of = sorted(range(n), key=lambda v: ids[v])
    by_kind = [[i for i in reversed(range(n)) if kinds[node_of[i]] == k] for k in range(num_kinds)]
    arrays["kind_start"] = [sum(len(b) for b in by_kind[:k]) for k in range(num_kinds + 1)]
    arrays["kind_node"] = [i for b in by_kind for i in b]
    sizes = {"num_nodes": n, "num_groups": len(groups), "num_roots": len(roots)}
    sizes["max_group"] = max((len(g) for g in groups), default=0)
    for name, children in slots.items():
        arrays[f"child_{name}"] = [ids[children[v]] if children[v] >= 0 else -1 for v in node_of]
    for name, each in lists.items():
        edges = [(i, ids[c]) for i, v in enumerate(node_of) for c in each[v]]
        arrays[f"{name}_ptr"] = [sum(len(each[v]) for v in node_of[:i]) for i in range(n + 1)]
        arrays[f"{name}_child"] = [c for _, c in edges]
        arrays[f"{name}_parent"] = [p for p, _ in edges]
        sizes[f"num_{name}_edges"] = len(edges)
        sizes[f"max_{name}_edges"] = max((sum(len(each[v]) for v in g) for g in groups), default=0)
    arrays["root"] = [ids[r] for r in roots]
    arrays["order"] = ids
    return sizes, arrays


def assert_is(found: dict[str, Any], expected: tuple[dict[str, int], dict[str, list[int]]]) -> None:
    """Compare what the native linearizer gave with the straightforward one."""
    sizes, arrays = expected
    assert found["sizes"] == sizes
    for name, values in arrays.items():
        assert found["arrays"][name].dtype == np.int32
        assert found["arrays"][name].tolist() == values, name


@pytest.fixture(scope="session")
def node() -> type[Node]:
    return Node


@pytest.fixture(scope="session")
def spec() -> Callable[..., dict[str, Any]]:
    return leaf_or_inner


@pytest.fixture(scope="session")
def linearizer() -> Callable[..., _native.Linearizer]:
    return lambda slots=(), lists=(), **more: _native.Linearizer(leaf_or_inner(list(slots), list(lists), **more))


@pytest.fixture(scope="session")
def straightforward() -> Callable[..., Any]:
    return linear_form


@pytest.fixture(scope="session")
def same_form() -> Callable[..., None]:
    return assert_is
