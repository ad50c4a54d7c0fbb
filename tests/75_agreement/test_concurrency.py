"""One executable in several threads and in forked processes."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from random import Random
from threading import Event
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import zoo
from cortex.structures.tree import Node

VOCAB = 40
Array = Any


@cache
def model(name: str = "tree_lstm", hidden: int = 20) -> tuple[Any, list[Any], list[Array]]:
    """A compiled model, structures, and its results in one thread."""
    entry = zoo.load(name)
    fast = cortex.compile(entry.model, entry.weights(hidden, VOCAB))
    roots = entry.structures(Random(1), 40, VOCAB)
    return fast, roots, [np.array(fast(root)[0]) for root in roots]


@pytest.mark.parametrize("name", ["tree_lstm", "nary_tree_lstm", "lstm"])
def test_four_threads_call_one_executable(name: str) -> None:
    fast, roots, expected = model(name)

    def run(seed: int) -> int:
        rng = Random(seed)
        wrong = 0
        for _ in range(60):
            chosen = rng.sample(range(len(roots)), rng.randint(1, 8))
            rows = np.array(fast([roots[i] for i in chosen])[0])
            wrong += not (rows == np.stack([expected[i] for i in chosen])).all()
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [0, 0, 0, 0]


@pytest.mark.parametrize("hidden", [4, 64])
def test_callers_leave_time_to_others(hidden: int) -> None:
    """Threads that call, some with functions too short to give the GIL away for, and one that counts."""
    fast, roots, expected = model("tree_lstm", hidden)
    done = Event()

    def count() -> int:
        counted = 0
        while not done.is_set():
            counted += 1
        return counted

    def call(first: int) -> bool:
        mine = roots[first::2]
        return all(
            (np.array(fast(r)[0]) == e).all() for _ in range(40) for r, e in zip(mine, expected[first::2], strict=True)
        )

    with ThreadPoolExecutor(3) as pool:
        counter = pool.submit(count)
        try:
            assert list(pool.map(call, range(2))) == [True, True]
        finally:
            done.set()
        assert counter.result() > 100


@cortex.model
def by_operator(node: Any, w: Any) -> Any:
    x = w.emb[node.word] + cortex.sum(by_operator(k, w) for k in node.children)
    if node.label == "a":
        return cortex.tanh(w.A @ x)
    if node.label == "b":
        return cortex.tanh(w.B @ x)
    return x * 0.5


def test_threads_that_meet_new_kinds_at_the_same_time() -> None:
    rng = np.random.default_rng(0)
    weights = {"A": rng.normal(size=(6, 6)), "B": rng.normal(size=(6, 6)), "emb": rng.normal(size=(5, 6))}
    trees = [Node([Node((), 1, label), Node((), 2, "c")], 3, other) for label in "abc" for other in "abc"]
    expected = [np.array(cortex.compile(by_operator, weights, examples=trees)(tree).out) for tree in trees]
    for _ in range(5):
        fast = cortex.compile(by_operator, weights)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda tree: np.array(fast(tree).out), trees))  # noqa: B023
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def _in_child(send: Any) -> None:
    fast, roots, expected = model()
    send.send(all((np.array(fast(root)[0]) == row).all() for root, row in zip(roots, expected, strict=True)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_calls_the_model() -> None:
    model()
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_in_child, args=(send,))
    process.start()
    assert receive.poll(60), "the child process did not answer"
    assert receive.recv() is True
    process.join(10)
    assert process.exitcode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_compiling_in_a_forked_process() -> None:
    _, roots, expected = model()
    pid = os.fork()
    if pid == 0:
        entry = zoo.load("tree_lstm")
        out = cortex.compile(entry.model, entry.weights(20, VOCAB))(roots[0])
        os._exit(0 if (np.array(out.h) == expected[0]).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
