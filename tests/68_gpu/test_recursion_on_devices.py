"""Steps on the recursion, and kinds that turn up later, mean on a device what the model as it was traced means."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.cost.choose import ALWAYS
from cortex.ra import interp
from cortex.recursion.batch import Batch
from cortex.recursion.dedup import Dedup
from cortex.recursion.refactor import Refactor
from cortex.recursion.tabulate import Tabulate
from cortex.recursion.unroll import UnrollRecursion
from cortex.runtime.linearize import linearize

STEPS = [
    ("tree_lstm", (Batch("depth"),)),
    ("tree_lstm", (Batch("none"),)),
    ("tree_lstm", (Tabulate(),)),
    ("dag_rnn", (Batch("agenda"),)),
    ("nary_tree_lstm", (Dedup(), Batch("depth"), Tabulate())),
    ("tree_rnn", (UnrollRecursion(2),)),
    ("simple_tree_gru", (Refactor(),)),
]


def check(fast: Any, structures: Any) -> None:
    """Roots and all nodes are what the interpreter makes of the model before all steps."""
    got, form = fast(structures), linearize(fast.traced, structures)
    for name, values in interp.run(fast.traced, fast.weights, form).items():
        np.testing.assert_allclose(got.nodes[name], values[form.arrays["order"]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got[name], values[form.arrays["root"]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "steps"), STEPS, ids=repr)
def test_steps_on_the_recursion(name: str, steps: Any) -> None:
    entry = zoo.load(name)
    weights, trees = entry.weights(8, 10), entry.structures(Random(2), 4, 10)
    recursion = (*ALWAYS, *steps)
    fast = cortex.compile(entry.model, weights, examples=trees, recursion=recursion, target="opencl")
    check(fast, trees)
    assert bool(fast.tables) is any(isinstance(step, Tabulate) for step in steps)


def test_kinds_that_turn_up_later() -> None:
    entry = zoo.load("nary_tree_lstm")
    weights, trees = entry.weights(8, 10), entry.structures(Random(2), 4, 10)
    leaf = trees[0]
    while leaf.left is not None:
        leaf = leaf.left
    fast = cortex.compile(entry.model, weights, examples=[leaf], target="opencl")
    fast(leaf)
    check(fast, trees)


def test_forests() -> None:
    entry = zoo.load("tree_fc")
    weights, trees = entry.weights(8, 10), entry.structures(Random(2), 1, 10)
    forest = cortex.Forest.from_slots(
        {"left": np.array([1, 3, -1, -1, -1]), "right": np.array([2, 4, -1, -1, -1])},
        {"word": np.array([0, 0, 1, 2, 3])},
    )
    fast = cortex.compile(entry.model, weights, examples=trees, target="opencl")
    check(fast, forest)


def test_modules_of_torch() -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.join = torch.nn.Embedding(10, 8), torch.nn.Linear(16, 8)

        def forward(self, node: Any) -> Any:
            if node.left is None:
                return self.words(torch.tensor(node.word))
            return torch.tanh(self.join(torch.cat([self(node.left), self(node.right)])))

    module = Encoder().eval()
    tree = zoo.load("tree_rnn").structures(Random(2), 1, 10)[0]
    fast = cortex.compile(module, examples=[tree], target="opencl")
    with torch.no_grad():
        torch.testing.assert_close(fast(tree), module(tree))
