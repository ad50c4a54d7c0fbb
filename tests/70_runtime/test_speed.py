"""Linearizing and calling must stay in the microseconds: as long as a walk in Python, or a few times as long.

Limits are loose; the printed numbers are what to watch.
"""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest
from processor_time import least

from cortex import _native


class Slotted:
    __slots__ = ("children", "word")

    def __init__(self, children: list[Any], word: int | None) -> None:
        self.children = children
        self.word = word


class Plain:
    def __init__(self, children: list[Any], word: int | None) -> None:
        self.children = children
        self.word = word


def parse_tree(make: type, leaves: int) -> Any:
    rng = random.Random(0)
    nodes = [make([], i % 1000) for i in range(leaves)]
    while len(nodes) > 1:
        i = rng.randrange(len(nodes) - 1)
        nodes[i : i + 2] = [make(nodes[i : i + 2], None)]
    return nodes[0]


def words(tree: Any) -> list[int | None]:
    found, left = [], [tree]
    while left:
        node = left.pop()
        found.append(node.word)
        left += node.children
    return found


@pytest.mark.parametrize("make", [Slotted, Plain])
def test_a_parse_tree(linearizer: Any, make: type) -> None:
    nothing = ctypes.CDLL(None).getpid
    arrays = [("index", "group_start"), ("field", "word"), ("state", "h", (256,), 256), ("state", "c", (256,), 256)]
    layout = {"entry": ctypes.cast(nothing, ctypes.c_void_p).value, "sizes": ["num_nodes"], "arrays": arrays}
    running = _native.Program(linearizer(lists=["children"]), layout)
    tree, one = [parse_tree(make, 19)], [make([], 1)]
    whole = least(lambda: running.run(tree, True), 20, 500)
    call = least(lambda: running.run(one, True), 20, 500)
    walk = least(lambda: words(tree[0]), 20, 500)
    print(f"{make.__name__}: 37 nodes {whole * 1e6:.2f} us, one node {call * 1e6:.2f} us; a walk {walk * 1e6:.2f} us")
    assert whole < 6 * walk
    assert call < 3 * walk


def test_a_large_tree(linearizer: Any) -> None:
    reading = linearizer(lists=["children"])
    tree = [parse_tree(Slotted, 20_000)]
    took, walk = least(lambda: reading.linearize(tree)), least(lambda: words(tree[0]))
    print(f"{took / 39_999 * 1e9:.0f} ns per node; a walk {walk / 39_999 * 1e9:.0f} ns")
    assert took < 5 * walk
