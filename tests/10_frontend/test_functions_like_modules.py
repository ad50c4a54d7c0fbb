"""Model functions may do what modules may: each program against its own uncompiled run, on other structures."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import functions_like_modules as programs
import numpy as np
import pytest
from functions_like_modules import PROGRAMS, WEIGHTS
from numpy.testing import assert_allclose, assert_array_equal

import cortex
from cortex import _native
from cortex.frontend.state import StateRecord
from cortex.runtime.executable import Executable


def arrays(result: Any) -> list[Any]:
    """The arrays of a result, in order."""
    return [np.asarray(x) for x in result] if isinstance(result, tuple | StateRecord) else [np.asarray(result)]


def rng(name: str) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, name)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_uncompiled(name: str) -> None:
    model, make = PROGRAMS[name]
    generator = rng(name)
    fast: Any = cortex.compile(model, WEIGHTS, examples=[make(2, generator)], check=False)
    others = [make(depth, generator) for depth in (3, 1)]
    alone = []
    for each in others:
        want = arrays(model(each, WEIGHTS))
        alone.append([np.asarray(x) for x in fast(each)])
        assert len(alone[-1]) == len(want)
        for got, expected in zip(alone[-1], want, strict=True):
            assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    together = [np.asarray(x) for x in fast(others)]
    for number, each in enumerate(alone):
        for rows, array in zip(together, each, strict=True):
            assert_array_equal(rows[number], array)


@pytest.mark.parametrize("name", ["by_class", "up_and_down", "looked_up_or_not", "of_parent", "missing_states"])
def test_saved(name: str, tmp_path: Path) -> None:
    model, make = PROGRAMS[name]
    generator = rng(name)
    fast: Any = cortex.compile(model, WEIGHTS, examples=[make(3, generator) for _ in range(6)])
    fast.save(tmp_path / "f.cortex")
    again: Any = cortex.load(tmp_path / "f.cortex")
    for each in (make(depth, generator) for depth in (3, 2)):
        for got, want in zip(again(each), fast(each), strict=True):
            assert_array_equal(got, want)


def test_states_at_every_node() -> None:
    tree = programs.tree(3, rng("nodes"))
    fast: Any = cortex.compile(programs.by_class, WEIGHTS, examples=[tree])
    results = fast.nodes(tree)
    assert fast(tree).nodes.out.shape == (tree.size(), 6)
    for node, h in results:
        assert_allclose(h, programs.by_class(node, WEIGHTS), rtol=2e-5, atol=2e-6)
    both: Any = cortex.compile(programs.up_and_down, WEIGHTS, examples=[tree])
    assert len(both.nodes(tree, routine="up")) == len(both.nodes(tree, routine="down")) == tree.size()
    assert_allclose(both.nodes(tree, routine="up").stored["up"][0], programs.up(tree, WEIGHTS), rtol=2e-5, atol=2e-6)


def test_the_first_call_is_an_example() -> None:
    trees = [programs.tree(depth, rng("first")) for depth in (2, 3)]
    for model in (programs.by_class, programs.passed, programs.stored):
        fast = cortex.compile(model, WEIGHTS)
        for tree in trees:
            assert_allclose(fast(tree)[0], model(tree, WEIGHTS), rtol=2e-5, atol=2e-6)


@cortex.model
def late(node: Any, w: Any) -> Any:
    if node.text == "w3":
        return w.b if isinstance(node, programs.Special) else w.b * 2
    return cortex.tanh(w.emb[node.word] + cortex.sum(late(k, w) for k in node.children))


def test_a_later_call_may_show_what_has_to_be_seen(tmp_path: Path) -> None:
    leaf, special = programs.Leaf(3), programs.Special(3)
    plain = programs.Node(1, programs.Leaf(2), programs.Leaf(4))
    fast = cortex.compile(late, WEIGHTS)
    for tree in (plain, programs.Node(1, leaf, special), plain, programs.Node(5, special)):
        assert_allclose(fast(tree).out, late(tree, WEIGHTS), rtol=2e-5, atol=2e-6)
    other = {name: 2 * x for name, x in WEIGHTS.items()}
    fast.update(other)
    assert_allclose(fast([plain, plain]).out[1], late(plain, other), rtol=2e-5, atol=2e-6)
    fast.save(tmp_path / "late.cortex")
    assert_array_equal(cortex.load(tmp_path / "late.cortex")(plain)[0], fast(plain)[0])


def test_weights_of_later_updates_and_other_constants() -> None:
    @cortex.model
    def scaled(node: Any, w: Any, scale: float = 1.0) -> Any:
        if isinstance(node, programs.Leaf):
            return w.emb[node.word] * scale
        return cortex.tanh(sum(scaled(k, w, scale) for k in node.children))

    tree = programs.tree(2, rng("scaled"))
    fast: Any = cortex.compile(scaled, WEIGHTS, examples=[tree])
    assert_allclose(fast(tree, 3.0)[0], scaled(tree, WEIGHTS, 3.0), rtol=2e-5, atol=2e-6)
    other = {name: -x for name, x in WEIGHTS.items()}
    fast.update(other)
    for scale in (1.0, 3.0):
        assert_allclose(fast(tree, scale)[0], scaled(tree, other, scale), rtol=2e-5, atol=2e-6)


def test_given_names() -> None:
    @cortex.model
    def renamed(node: Any, w: Any) -> Any:
        if isinstance(node, programs.Leaf):
            return w.emb[node.index]
        return cortex.tanh(w.emb[node.index] + sum(renamed(k, w) for k in node.kids))

    options: Any = {"fields": {"index": "word", "kids": lambda node: node.children[::-1]}}
    trees = [programs.tree(depth, rng("names")) for depth in (2, 3)]
    fast: Any = cortex.compile(renamed, WEIGHTS, examples=trees[:1], **options)
    for tree in trees:
        assert_allclose(fast(tree)[0], renamed.uncompiled(tree, WEIGHTS, **options), rtol=2e-5, atol=2e-6)


def test_simple_functions_stay_as_they_were() -> None:
    @cortex.model
    def simple(node: Any, w: Any) -> Any:
        return cortex.tanh(w.emb[node.word] + cortex.sum(simple(k, w) for k in node.children))

    fast = cortex.compile(simple, WEIGHTS, examples=[programs.tree(2, rng("simple"))])
    assert isinstance(fast, Executable)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import functions_like_modules as programs, numpy as np, cortex
for name in ("by_class", "passed", "stored", "looked_up", "up_and_down", "first_child", "tuples"):
    model, make = programs.PROGRAMS[name]
    tree, other = (make(depth, np.random.default_rng(1)) for depth in (2, 3))
    fast = cortex.compile(model, programs.WEIGHTS, examples=[tree])
    np.testing.assert_allclose(fast(other)[0], model(other, programs.WEIGHTS), rtol=2e-5, atol=2e-6)
print("as uncompiled")
"""


def test_without_torch() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=120
    )
    assert run.stdout.strip() == "as uncompiled", run.stderr


@pytest.mark.parametrize("name", ["by_class", "up_and_down", "looked_up_or_not", "missing_states"])
def test_later_calls_are_made_by_one_native_call(name: str) -> None:
    model, make = PROGRAMS[name]
    generator = rng(name)
    fast: Any = cortex.compile(model, WEIGHTS, examples=[make(3, generator) for _ in range(6)])
    trees = [make(depth, generator) for depth in (3, 1, 2)]
    first = [fast([tree]) for tree in trees]  # these calls are not
    for tree in trees:
        fast(tree)
    assert isinstance(fast._last.in_memory.direct, _native.DirectCall)
    found = [fast(tree) for tree in trees]
    for tree, rows, out in zip(trees, first, found, strict=True):
        for row, got in zip(rows, out, strict=True):
            assert_array_equal(got, row[0])
        if name == "by_class":
            assert_array_equal(np.asarray(out.nodes[0]), fast.nodes(tree).arrays[0])
            assert_array_equal(pickle.loads(pickle.dumps(out)).out, out.out)
