"""Random object graphs with random things wrong in them, many calls, many executables.

Whatever is given, what comes out is the right value, an error of Cortex, or the exception that the objects raised
themselves; and the executable computes the same as before.
"""

from __future__ import annotations

import gc
import os
import weakref
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from process_memory import growth, needs_proc
from small_models import SMALL, WEIGHTS, Node, Small

import cortex
from cortex import Forest, zoo
from cortex.zoo.structures import grids

CASES = 4000 if os.environ.get("CORTEX_FUZZ") == "long" else 400
CALLS = 200_000 if os.environ.get("CORTEX_FUZZ") == "long" else 20_000


class Own(Exception):
    """What hostile objects raise."""


class Hostile:
    """An object with every attribute, each nonsense, that can be neither compared nor shown."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, odd_value(self.random))
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        raise Own("eq")

    def __hash__(self) -> int:
        raise Own("hash")

    def __repr__(self) -> str:
        raise Own("repr")


class Raising:
    def __getattribute__(self, name: str) -> Any:
        raise Own(name)


def odd_value(random: Random) -> Any:
    """A value that is seldom what an attribute should be."""
    choice = random.randrange(24)
    match choice:
        case 0:
            return Hostile(random)
        case 1:
            return Raising()
        case 2:
            return (odd_value(random) for _ in range(2))
        case 3:
            return [odd_value(random) for _ in range(2)]
        case 4:
            return np.array([odd_value(random)], dtype=object)
        case 5:
            raise Own("read")
        case _:
            return (
                None, 0, 1, 9, 10, -1, 2**40, 2**70, 1.5, float("nan"), "word", "not", "", b"x", True, object(),
                np.ones(4), np.ones(3),
            )[choice - 6]  # fmt: skip


def hostile_structure(random: Random, name: str) -> Any:
    """A structure for the model `name`: mostly right, with things broken here and there."""
    nodes: list[Any] = []
    broken = random.choice([0.0, 0.02, 0.3])
    for _ in range(random.randrange(1, 9)):
        below = random.choices(nodes, k=random.randrange(3)) if nodes else []
        pair = (below + below)[:2] if below else (None, None)
        node = SimpleNamespace(
            children=below, args=list(below), word=random.randrange(10), x=np.ones(4), scale=1.0,
            left=pair[0], right=pair[1], prev=pair[0], next=pair[0], size=random.randrange(3),
            op=("and" if below else "word"), arg=pair[0],
        )  # fmt: skip
        for attribute in vars(node).copy():
            if random.random() < broken:
                match random.randrange(4):
                    case 0:
                        delattr(node, attribute)
                    case 1 if nodes:
                        setattr(node, attribute, random.choice([nodes, nodes[-1]]))
                    case _:
                        try:
                            setattr(node, attribute, odd_value(random))
                        except Own:
                            delattr(node, attribute)
        nodes.append(node)
    if random.random() < broken:
        nodes[0].children = [nodes[-1]]  # most likely a cycle
    root = nodes[-1]
    return random.choice([root, [root], nodes, [root, odd_or_root(random, root)]])


def odd_or_root(random: Random, root: Any) -> Any:
    try:
        return odd_value(random)
    except Own:
        return root


def check_value(small: Small, given: Any, out: Any) -> None:
    """Compare with the recursion in NumPy, where plain NumPy can follow."""
    roots = given if isinstance(given, list) else [given]
    rows = out if isinstance(given, list) else out[None]
    for root, row in zip(roots, rows, strict=True):
        try:
            expected = small.value(root)
        except Exception:
            continue  # what Cortex accepts and NumPy does not: absent lists, words that are True, ...
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_hostile_structures(name: str) -> None:
    small = SMALL[name]
    fast = cortex.compile(small.model, WEIGHTS, fields=small.fields)
    good = small.good()
    expected = fast(good).out
    outcomes = {"value": 0, "refused": 0, "own": 0}
    for seed in range(CASES):
        random = Random(seed)
        given = hostile_structure(random, name)
        try:
            out = fast(given).out
        except cortex.CortexError as error:
            assert not isinstance(error, cortex.InternalError)
            assert str(error)
            outcomes["refused"] += 1
        except Own:
            outcomes["own"] += 1
        else:
            outcomes["value"] += 1
            check_value(small, given, out)
        if seed % 50 == 0:
            np.testing.assert_array_equal(fast(good).out, expected)
    np.testing.assert_array_equal(fast(good).out, expected)
    assert min(outcomes["value"], outcomes["refused"]) > CASES // 20, outcomes


def test_hostile_arrays() -> None:
    fast = SMALL["tree"].compiled()
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(0, 8))
        parents = rng.integers(-2 if seed % 3 == 0 else -1, n + (seed % 5 == 0), size=n)
        if seed % 2:
            parents = np.minimum(parents, np.arange(n) - 1)
        words = rng.integers(-1 if seed % 7 == 0 else 0, 11 if seed % 7 == 1 else 10, size=n)
        try:
            out = fast(Forest.from_parents(parents, fields={"word": words})).out
        except cortex.StructureError:
            continue
        assert np.isfinite(out).all()


@needs_proc
def test_memory_does_not_grow() -> None:
    fast = SMALL["tree"].compiled()
    good = SMALL["tree"].good()
    wrong = [Node(Node(word=1), Node(word=99)), Node(Node(), word=1), [None], Node(*[5])]

    def call(times: int) -> None:
        for i in range(times):
            fast(good)
            if i % 4 == 0:
                with pytest.raises(cortex.StructureError):
                    fast(wrong[i // 4 % len(wrong)])

    call(2_000)
    assert growth(lambda: call(CALLS // 4)) < 1 << 20


@cortex.model
def tiny(node: Any, w: Any) -> Any:
    return w.b if node.is_leaf else w.b + cortex.sum(tiny(k, w) for k in node.children)


def test_executables_are_collected() -> None:
    """Many executables, some in reference cycles and with results still alive; the collector takes them all."""
    tree = Node(Node(), Node())
    gone: list[weakref.ref[Any]] = []
    for i in range(200 if CASES > 400 else 40):
        fast = cortex.compile(tiny, {"b": np.full(3, i)}, children=_accessor(holder := SimpleNamespace()))
        holder.fast = fast  # a cycle through the accessor that the linearizer holds
        out = fast(tree)
        holder.out = out
        assert out.out[0] == 3 * i
        gone.append(weakref.ref(fast))
        if i % 10 == 0:
            gc.collect()
            assert out.nodes.out.shape == (3, 3)
    del fast, out, holder
    gc.collect()
    assert not any(ref() for ref in gone)


def _accessor(holder: Any) -> Any:
    return lambda node: node.children if holder else []


def test_collecting_while_models_run() -> None:
    """A collection at every allocation of a container, around results that come and go."""
    entry = zoo.load("dag_rnn")
    fast = cortex.compile(entry.model, entry.weights(8, 20))
    random = Random(0)
    trees = grids(random, 4, 20)
    expected = fast(trees).nodes.h
    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(20):
            out = fast(trees)
            np.testing.assert_array_equal(out.nodes.h, expected)
            assert fast(trees[0]).h.shape == (8,)
    finally:
        gc.set_threshold(*threshold)
