"""Kernels on an OpenCL device agree with the definition of the model: the zoo, random models, the Stanford trees.

pytest tests/68_gpu/test_opencl_agreement.py                       two random models; 100 trees for one of the zoo
CORTEX_FUZZ=long pytest tests/68_gpu/test_opencl_agreement.py      200 random models; 1,000 trees for all of the zoo
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyopencl")
torch = pytest.importorskip("torch")

from scheduled_for_gpu import VOCAB, attentive, attentive_weights  # noqa: E402

import cortex  # noqa: E402
from cortex import zoo  # noqa: E402
from cortex.codegen.gpu.device_code import DeviceCode  # noqa: E402
from cortex.runtime.devices import gpu_target  # noqa: E402
from cortex.runtime.opencl import find_device  # noqa: E402

for folder in ("fuzz", "75_agreement", "."):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
import zoo_structures  # noqa: E402
from random_cases import batches, well_conditioned_weights  # noqa: E402
from random_models import compilable, random_model  # noqa: E402

TWO = min(2, find_device().compute_units)
FORMS = {"persistent": gpu_target("opencl", persistent=True, groups=1)}
FORMS["per level"] = gpu_target("opencl", persistent=False, groups=2)
LONG = os.environ.get("CORTEX_FUZZ") == "long"
SEEDS = range(200) if LONG else range(2)


def check(fast: Any, batch: list[Any]) -> int:
    """All states of all nodes agree with ra.interp; gives the number of launches."""
    out, want = fast(batch), fast.interpret(batch)
    for name, values in want.items():
        np.testing.assert_allclose(np.asarray(out.nodes[name]), values, rtol=1.3e-6, atol=1e-5)
    launches: int = out._run.launches
    return launches


def kernels(fast: Any) -> tuple[str, ...]:
    code = fast.compiled.code
    assert isinstance(code, DeviceCode)
    return tuple(k.name for k in code.program.kernels)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_zoo(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "per level":  # some of the steps of the persistent form, which is verified after each
        monkeypatch.setenv("CORTEX_VERIFY", "0")
    entry = zoo.load(name)
    trees = entry.structures(random.Random(0), 2, VOCAB)
    fast = cortex.compile(entry.model, entry.weights(8, VOCAB), examples=trees, target=FORMS[form])
    for batch in (trees[:1], trees):
        launches = check(fast, batch)
        assert launches == 1 or form == "per level"
    if form == "persistent":
        assert len(kernels(fast)) == 1


@pytest.mark.parametrize("name", ["tree_lstm", "mv_rnn"])
def test_work_groups_wait_for_each_other(name: str) -> None:
    entry = zoo.load(name)
    trees = entry.structures(random.Random(0), 2, VOCAB)
    target = gpu_target("opencl", persistent=True, groups=TWO)
    fast = cortex.compile(entry.model, entry.weights(12, VOCAB), examples=trees, target=target)
    assert check(fast, trees) == 1
    assert ("grid_barrier" in fast.compiled.code.text) is (TWO > 1)


def test_launches_per_level() -> None:
    entry = zoo.load("tree_fc")
    trees = entry.structures(random.Random(0), 1, VOCAB)
    fast = cortex.compile(entry.model, entry.weights(8, VOCAB), examples=trees, target=FORMS["per level"])
    _leaves, *levels = fast.linearize(trees).arrays["group_kind"]
    assert check(fast, trees) == 1 + len(levels)  # what comes before the recursion, and each level but the leaves'


@pytest.mark.parametrize("form", FORMS)
def test_sums_by_items_and_a_weight_called_as_a_loop_is(form: str) -> None:
    trees = zoo.load("tree_lstm").structures(random.Random(1), 2, VOCAB)
    check(cortex.compile(attentive, attentive_weights(20), examples=trees, target=FORMS[form]), trees)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_models(seed: int) -> None:
    """In the long run each model in both forms, else one model in each."""
    m = random_model(seed)
    given = batches(m, 2)
    weights = well_conditioned_weights(m, given)
    if weights is None:
        return  # PyTorch in float32 does not agree with itself in float64
    every = [root for batch in given for root in batch]
    forms = dict(FORMS)
    if seed % 8 == 3:  # some with barriers among work-groups, which take their time where others use the cores too
        forms["persistent"] = gpu_target("opencl", persistent=True, groups=TWO)
    for target in forms.values() if LONG else list(forms.values())[seed : seed + 1]:
        fast = cortex.compile(compilable(m), None if m.closure else weights, examples=every, target=target)
        for batch in given:
            check(fast, batch)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", zoo.ENTRIES if LONG else ["tree_lstm"])
def test_stanford_trees(name: str, form: str) -> None:
    count = 1000 if LONG else 100
    trees = zoo_structures.batch(name, "stanford", count)
    entry = zoo.load(name)
    fast = cortex.compile(entry.model, entry.weights(16, zoo_structures.VOCAB), examples=trees[:20], target=FORMS[form])
    for first in range(0, count, 50):
        launches = check(fast, trees[first : first + 50])
        assert launches == 1 or form == "per level"
