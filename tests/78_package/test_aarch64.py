"""AArch64: packages run in an emulator and agree; sums of products are multiply-adds by element, in registers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly_kernels import kernels
from breadth import pairs, some
from c_program import Package, forest_of
from c_tools import CROSS, EMULATOR, found
from sums_and_products import cell, cell_forest, weights

import cortex
from cortex import zoo
from cortex.codegen.target import CPUS, Target
from cortex.errors import ModelError

Exported = Callable[..., tuple[Package, Path]]
TARGET = "aarch64-linux-gnu"
VOCABULARY = 50


@cache
def compiled(name: str, cpu: str, hidden: int, threads: int = 1) -> Any:
    entry = zoo.load(name)
    examples = entry.structures(random.Random(1), 3, VOCABULARY)
    given = entry.weights(hidden, VOCABULARY)
    return cortex.compile(entry.model, given, examples=examples, target=TARGET, cpu=cpu, threads=threads)


@pytest.mark.parametrize("name", some(zoo.ENTRIES, ["tree_lstm", "tree_gru", "mv_rnn", "dag_rnn", "rntn", "lstm"]))
def test_zoo_in_an_emulator(name: str, exported: Exported) -> None:
    found(EMULATOR)
    fast, entry = compiled(name, "neoverse-n1", 24), zoo.load(name)
    trees = entry.structures(random.Random(1), 3, VOCABULARY)
    here = cortex.compile(entry.model, entry.weights(24, VOCABULARY), examples=trees)
    package, program = exported(fast, name, compiler=found(CROSS))
    (answer,), _ = package.run(program, [forest_of(fast, trees)], before=(EMULATOR,))
    want = here(trees)
    for state, rows in answer.nodes.items():
        np.testing.assert_allclose(rows, want.nodes[state], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(answer.roots[state], want[state], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cpu", ["neoverse-v2", "apple-m1"])
def test_other_processors_and_threads_in_an_emulator(cpu: str, exported: Exported) -> None:
    found(EMULATOR)
    forest = cell_forest(1, 60, True)
    here = cortex.compile(cell, weights(), examples=forest.root_nodes())(forest)
    fast = cortex.compile(cell, weights(), examples=forest.root_nodes(), target=TARGET, cpu=cpu, threads=2)
    package, program = exported(fast, "cell", compiler=found(CROSS))
    bits = set()
    for threads in (1, 2):
        (answer,), _ = package.run(program, [forest], threads, before=(EMULATOR, "-cpu", "max"))
        np.testing.assert_allclose(answer.nodes["h"], here.nodes["h"], rtol=1e-5, atol=1e-5)
        bits.add(answer.nodes["h"].tobytes())
    assert len(bits) == 1


@pytest.mark.parametrize(("name", "cpu"), pairs(zoo.ENTRIES, CPUS[TARGET], whole=["tree_lstm"]))
def test_sums_stay_in_registers(name: str, cpu: str) -> None:
    found_kernels = kernels(compiled(name, cpu, 64).compiled.code.assembly())
    assert found_kernels or name == "tree_rnn", "only this model has no products"
    for kernel in found_kernels:
        assert kernel.spills == ()
        sums = [i for i in kernel.instructions if i.startswith("fmla")]
        by_element = [i for i in sums if re.search(r"v\d+\.4s, v\d+\.4s, v\d+\.s\[\d\]", i)]
        # Where all rows are one node's, a matrix's own elements are not weights: those are plain multiply-adds.
        assert len(by_element) >= 0.75 * len(sums) or len(sums) == 1


def test_spills_are_seen() -> None:
    """A tile that leaves no registers for elements is spilled, which is what `broadcasts` is for."""
    text = compiled("tree_lstm", "neoverse-n1", 64).compiled.code.assembly()
    assert not any("[sp" in i for k in kernels(text) for i in k.instructions)
    kernel = next(k for k in kernels(text) if k.multiply_adds > 20)
    spilled = text.replace(kernel.instructions[0], "ldr\tq0, [sp, #16]", 1)
    assert any(k.spills for k in kernels(spilled))


def test_a_foreign_program_says_that_it_cannot_be_called() -> None:
    if Target.host().architecture == "aarch64":
        pytest.skip("this machine is AArch64")
    with pytest.raises(ModelError, match=r"compiled for aarch64-unknown-linux-gnu \(apple-m1\), which this machine"):
        compiled("tree_fc", "apple-m1", 64)(zoo.load("tree_fc").structures(random.Random(0), 1, VOCABULARY))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"target": "riscv64"},
            "there is no such target; there are x86-64-linux-gnu, aarch64-linux-gnu, opencl, cuda.",
        ),
        ({"target": TARGET, "cpu": "z80"}, "cpu='z80': give one of neoverse-n1, neoverse-v2, apple-m1, native."),
        ({"cpu": "apple-m1"}, "cpu='apple-m1': give the target too"),
        ({"target": Target.x86("avx2"), "cpu": "apple-m1"}, "the target has a processor already, 'x86-64-v3'"),
    ],
)
def test_unknown_targets(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        cortex.compile(cell, weights(), **given)
