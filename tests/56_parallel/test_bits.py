"""Results are the same to the bit on any number of threads, in any batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from breadth import pairs, some

from cortex import zoo
from cortex.bench.recursive import MODELS
from cortex.ilir.ir import For, LoopKind
from cortex.ir.node import walk
from cortex.schedule.parallel_trees import ParallelTrees

Build = Callable[..., tuple[Any, list[Any]]]


def is_parallel(fast: Any) -> bool:
    return any(isinstance(n, For) and n.kind is LoopKind.PARALLEL for n in walk(fast.compiled.func))


# The models of the benchmarks; the others, which have the same loops, in the long run.
NAMES = some(zoo.ENTRIES, MODELS)
MAPPINGS = pairs(NAMES, ("columns", "nodes", "trees"), each=2)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_threads(compiled: Build, name: str) -> None:
    hidden = 24 if name in ("rntn", "mv_rnn") else 72
    serial, trees = compiled(name, hidden, 1, 10)
    assert not is_parallel(serial)
    for mapping in (m for n, m in MAPPINGS if n == name):
        team, _ = compiled(name, hidden, 2, 10, mapping)
        assert is_parallel(team)
        assert (ParallelTrees() in team.schedule.steps) == (mapping == "trees")
        for batch in (trees[:1], trees, trees[3:6]):
            want = serial(batch)
            for threads in (1, 2, 3, 8):
                for _ in range(3):
                    got = team(batch, threads=threads)
                    for state in zoo.load(name).states:
                        assert getattr(got.nodes, state).tobytes() == getattr(want.nodes, state).tobytes()


@pytest.mark.parametrize("hidden", [7, 33])
def test_odd_sizes(compiled: Build, hidden: int) -> None:
    serial, trees = compiled("tree_lstm", hidden, 1)
    team, _ = compiled("tree_lstm", hidden, 3)
    for threads in (1, 2, 5):
        assert team(trees, threads=threads).nodes.h.tobytes() == serial(trees).nodes.h.tobytes()
