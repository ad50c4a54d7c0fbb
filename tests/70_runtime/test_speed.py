"""Linearizing and calling must stay in the microseconds. Limits are loose; the printed numbers are what to watch."""

from __future__ import annotations

import ctypes
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

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


def best(f: Callable[[], Any], calls: int, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            f()
        times.append((time.perf_counter() - start) / calls)
    return min(times)


@pytest.mark.parametrize("make", [Slotted, Plain])
def test_a_parse_tree(linearizer: Any, make: type) -> None:
    nothing = ctypes.CDLL(None).getpid
    arrays = [("index", "group_start"), ("field", "word"), ("state", "h", (256,), 256), ("state", "c", (256,), 256)]
    layout = {"entry": ctypes.cast(nothing, ctypes.c_void_p).value, "sizes": ["num_nodes"], "arrays": arrays}
    running = _native.Program(linearizer(lists=["children"]), layout)
    tree, one = [parse_tree(make, 19)], [make([], 1)]
    whole = best(lambda: running.run(tree, True), 500, 20)
    call = best(lambda: running.run(one, True), 500, 20)
    print(f"{make.__name__}: 37 nodes {whole * 1e6:.2f} us, one node {call * 1e6:.2f} us")
    assert whole < 15e-6
    assert call < 10e-6


def test_a_large_tree(linearizer: Any) -> None:
    reading = linearizer(lists=["children"])
    tree = [parse_tree(Slotted, 20_000)]
    took = best(lambda: reading.linearize(tree), 1, 5)
    print(f"{took / 39_999 * 1e9:.0f} ns per node")
    assert took / 39_999 < 1e-6
