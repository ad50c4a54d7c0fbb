"""The plain schedule: no tiles, nothing packed, and the answers of every model of the zoo."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.codegen.target import Target
from cortex.ir.step import apply
from cortex.lower.lower import lower
from cortex.ra.simplify import simplify
from cortex.recursion.specialize import Specialize
from cortex.schedule.default import Registers
from cortex.schedule.pack import Pack
from cortex.schedule.plain import plain_schedule
from cortex.schedule.schedule import Schedule
from cortex.schedule.tile import Tile
from cortex.schedule.vector_reduce import VectorReduce

# 32 is a whole number of vectors on every machine, 24 on some, and 6 is less than a vector.
SIZES = {"tree_gru": 24, "mv_rnn": 32, "dag_rnn": 6, "rntn": 32}


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_computes_the_same(name: str, fuse: bool) -> None:
    entry = zoo.load(name)
    weights = entry.weights(SIZES[name], 20)
    structures = entry.structures(Random(1), 3, 20)
    fast = cortex.compile(entry.model, weights, examples=structures)
    target = Target.host()
    recursion = (Specialize(()),)
    f = lower(apply(simplify(fast.traced), recursion), target.lanes)
    steps = plain_schedule(f, Registers(target.registers, target.lanes), fuse)
    assert not any(isinstance(s, Pack) for s in steps)
    assert all((s.height, s.vectors) == (1, 1) for s in steps if isinstance(s, Tile))
    if SIZES[name] >= target.lanes:
        assert any(isinstance(s, VectorReduce) for s in steps)
    plain = cortex.compile(entry.model, weights, examples=structures, schedule=Schedule((*recursion, *steps)))
    expected = fast(structures)
    for state in entry.states:
        np.testing.assert_allclose(plain(structures)[state], expected[state], rtol=1e-4, atol=1e-5)
