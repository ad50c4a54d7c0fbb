"""The limit counted in a program is the one written down for the models of the suite."""

from __future__ import annotations

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.bench.data import workload
from cortex.bench.limit import Machine, limit_us
from cortex.bench.limit_of_program import counted_model, limit_of_program_us, products
from cortex.bench.recursive import MODELS
from cortex.cost.choose import ALWAYS
from cortex.frontend.trace import Trace
from cortex.frontend.weights import Weights
from cortex.runtime.linearize import linearize

MACHINE = Machine(peak=100.0, l2=50.0, beyond=10.0, l2_bytes=1 << 18)
VOCABULARY = 60


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("hidden", [32, 160])
@pytest.mark.parametrize("model", MODELS)
def test_is_the_limit_of_the_suite(model: str, hidden: int, threads: int) -> None:
    entry = zoo.load(model)
    requests = workload(model, VOCABULARY, None)
    trees = requests.fresh(0, 3)
    trace = Trace(entry.model, Weights(entry.weights(hidden, VOCABULARY)))
    trace.explore()
    trace.see(trees)
    m = counted_model(trace.model())
    counted = limit_of_program_us(m, linearize(m, trees), MACHINE, threads)
    assert counted == pytest.approx(limit_us(model, hidden, requests.levels(0, 3), MACHINE, threads), rel=0.03)


def test_is_counted_without_the_steps_that_do_less() -> None:
    assert not any("Tabulate" in repr(step) or "Dedup" in repr(step) for step in ALWAYS)


def test_products_of_two_kinds_on_the_same_weights_read_them_once() -> None:
    @cortex.model
    def f(node, w):  # type: ignore[no-untyped-def]
        if node.is_leaf:
            return w.emb[node.word]
        s = cortex.sum(f(k, w) for k in node.children)
        return cortex.tanh(w.U @ s) if node.op == "a" else cortex.relu(w.U @ s)

    class Node:
        def __init__(self, *children: Node, op: str = "a") -> None:
            self.children, self.op, self.word = children, op, 0

    size = 64
    trees = [Node(Node(), op="a"), Node(Node(), op="b")]
    weights = {"emb": np.zeros((3, size), np.float32), "U": np.zeros((size, size), np.float32)}
    trace = Trace(f, Weights(weights))
    trace.explore()
    trace.see(trees)
    m = counted_model(trace.model())
    assert sorted(sum(p.macs for p in products(kind)) for kind in m.kinds) == [0, size**2, size**2]
    # Two nodes, 2 x 4,096 multiply-adds: 164 ns; 16 KiB of weights, once: 328 ns.
    us = limit_of_program_us(m, linearize(m, trees), MACHINE, 1)
    assert us == pytest.approx(4 * size**2 / 50.0 / 1e3)
