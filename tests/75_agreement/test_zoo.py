"""The zoo on real and generated structures of every shape: four-way agreement, at every node."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from assembly_kernels import kernels, spills  # noqa: E402
from breadth import pairs  # noqa: E402
from four_ways import FourWays  # noqa: E402
from zoo_structures import SHAPES, VOCAB, batch  # noqa: E402

import cortex  # noqa: E402
from cortex import zoo  # noqa: E402
from cortex.codegen.target import Target  # noqa: E402

INTERPRETED = ("single", "empty", "chains")


@cache
def ways(name: str, hidden: int) -> tuple[FourWays, Any]:
    entry = zoo.load(name)
    weights = entry.weights(hidden, VOCAB, seed=3)
    examples = [root for shape in SHAPES for root in batch(name, shape)]
    return FourWays(entry.model, weights, examples), entry.reference(weights)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "hidden"), pairs(zoo.ENTRIES, [7, 16], whole=["tree_lstm", "gru"]))
def test_four_ways(name: str, hidden: int, shape: str) -> None:
    four, reference = ways(name, hidden)
    report = four.check(batch(name, shape), lambda node: vars(reference(node)), 3e5)
    assert report.compiled < 1e-5
    if shape in INTERPRETED and hidden == 7:
        assert report.interpreted or name in ("mv_rnn", "rntn")


@pytest.mark.parametrize(("name", "hidden"), pairs(zoo.ENTRIES, [1, 100, 7, 256, 16, 300], each=2))
def test_compiled_equals_torch_at_many_sizes(name: str, hidden: int) -> None:
    entry = zoo.load(name)
    if name in ("mv_rnn", "rntn") and hidden > 100:
        hidden = 128 if name == "mv_rnn" else 64  # a matrix per word, or a weight of 4 H**3 elements
    weights = entry.weights(hidden, VOCAB, seed=5)
    fast, reference = cortex.compile(entry.model, weights), entry.reference(weights)
    roots = entry.structures(Random(hidden), 3, VOCAB) + batch(name, "stanford", 2)
    out = fast(roots)
    for state in entry.states:
        expected = torch.stack([getattr(reference(root), state) for root in roots])
        torch.testing.assert_close(torch.from_numpy(np.array(out[state])), expected)


@pytest.mark.parametrize(("name", "level"), pairs(zoo.ENTRIES, ["avx512", "avx2", "sse2"], whole=["tree_lstm"]))
def test_other_instruction_sets(name: str, level: Any) -> None:
    host, target = Target.host(), Target.x86(level)
    if not all(host.has(f.removeprefix("+")) for f in target.features.split(",")):
        pytest.skip(f"this machine cannot run {level}")
    entry = zoo.load(name)
    weights = entry.weights(17, VOCAB, seed=6)
    roots = batch(name, "stanford", 2) + batch(name, "single", 1)
    four = FourWays(entry.model, weights, roots, target=target)
    reference = entry.reference(weights)
    four.check(roots, lambda node: vars(reference(node)), 0)


@pytest.mark.parametrize(
    ("name", "level"), pairs(zoo.ENTRIES, ["avx512", "avx2"], whole=["tree_lstm", "gru", "mv_rnn"])
)
def test_no_spills_in_the_loops_over_k(name: str, level: Any) -> None:
    entry = zoo.load(name)
    hidden = 64 if name in ("mv_rnn", "rntn") else 256
    fast = cortex.compile(
        entry.model,
        entry.weights(hidden, VOCAB),
        examples=entry.structures(Random(0), 1, VOCAB),
        target=_runnable(level),
    )
    assembly = fast.compiled.code.assembly()
    assert name == "tree_rnn" or kernels(assembly), "no loop with multiply-adds was found"
    assert spills(assembly) == ()


def _runnable(level: Any) -> Target:
    host, target = Target.host(), Target.x86(level)
    if not all(host.has(f.removeprefix("+")) for f in target.features.split(",")):
        pytest.skip(f"this machine cannot run {level}")
    return target
