"""No two threads race, and no barrier could be left out."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.ilir.ir import Barrier, Func
from cortex.ir.node import map_operands, walk
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.tabulate_leaf_products import TabulateLeafProducts

sys.path.insert(0, str(Path(__file__).parent))
from races import races

Build = Callable[..., tuple[Any, list[Any]]]


def barriers(f: Func) -> int:
    return sum(isinstance(n, Barrier) for n in walk(f))


def without_barrier(f: Func, number: int) -> Func:
    """`f` with one of its barriers removed."""
    met = -1

    def visit(n: Any) -> Any:
        nonlocal met
        if isinstance(n, Barrier):
            met += 1
            return () if met == number else n
        return map_operands(n, visit)

    return replace(f, body=tuple(new for s in f.body if (new := visit(s)) != ()))


def request(fast: Any, trees: list[Any]) -> tuple[dict[str, int], dict[str, Any]]:
    form = fast.linearize(trees)
    return form.sizes, form.arrays


@pytest.mark.parametrize("name", [n for n in zoo.ENTRIES if n != "tree_rnn"])
def test_no_races(compiled: Build, name: str) -> None:
    fast, _ = compiled(name, 14 if name in ("rntn", "mv_rnn") else 40, 2, 1)
    trees = zoo.load(name).structures(random.Random(3), 6, 50)
    sizes, arrays = min((request(fast, [t]) for t in trees), key=lambda r: r[0]["num_nodes"])
    f = fast.compiled.func
    assert barriers(f) > 0
    for threads in (2, 3) if name in ("tree_lstm", "tree_gru") else (3,):
        assert races(f, sizes, arrays, threads) == []


@pytest.mark.parametrize("name", ["tree_lstm", "tree_gru"])
def test_every_barrier_is_needed(compiled: Build, name: str) -> None:
    # Not with TabulateLeafProducts: of TreeGRU, no race shows without the first barrier above leaves, by height.
    fast, trees = compiled(name, 64, 2, 6, recursion=(*ALWAYS, Tabulate("leaf")))
    sizes, arrays = min((request(fast, [t]) for t in trees), key=lambda r: r[0]["num_nodes"])
    f = fast.compiled.func
    for number in range(barriers(f)):
        fewer = without_barrier(f, number)
        assert barriers(fewer) == barriers(f) - 1
        assert races(fewer, sizes, arrays, 2) != []


def test_two_barriers_a_level_for_a_gru_and_one_for_a_product(compiled: Build) -> None:
    tables = (*ALWAYS, Tabulate("leaf"))
    assert barriers(compiled("tree_gru", 128, 2, recursion=tables)[0].compiled.func) == 2
    above = (*tables, TabulateLeafProducts())  # nodes above leaves look up what they multiply with: one for them
    assert barriers(compiled("tree_gru", 128, 2, recursion=above)[0].compiled.func) == 3
    assert barriers(compiled("tree_fc", 128, 2)[0].compiled.func) == 1
    assert barriers(compiled("lstm", 32, 2)[0].compiled.func) == 1
