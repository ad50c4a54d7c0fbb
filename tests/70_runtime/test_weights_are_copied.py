"""Weights have the values that they had when they were given, whatever happens to the caller's arrays."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import cortex

SIZE = 12
Array = np.ndarray


@cortex.model
def kinds(node: Any, w: Any) -> Any:
    below = cortex.sum(kinds(k, w) for k in node.children)
    if node.op == "minus":
        return cortex.tanh(w.emb[node.word] - w.U @ below + w.b)
    return cortex.tanh(w.emb[node.word] + w.U @ below + w.b)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def Node(word: int, *children: Any, op: str = "plus") -> Any:
    return SimpleNamespace(word=word, children=list(children), op=op)


TREE = Node(1, Node(2), Node(3, Node(4)))
MINUS = Node(1, Node(2, op="minus"), op="minus")


def random_weights() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    shapes = {"emb": (10, SIZE), "U": (SIZE, SIZE), "b": (SIZE,)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def check(fast: Any, path: Path) -> None:
    """All ways to see the weights see those of `random_weights`, in code that is made now, too."""
    want = cortex.compile(kinds, random_weights())
    for tree in (TREE, MINUS):
        close(fast(tree).out, want(tree).out)
        close(fast.interpret(tree)["out"], want.interpret(tree)["out"])
        close(fast(tree, threads=2).out, want(tree).out)
    for name, array in random_weights().items():
        close(fast.weights[name], array)
    fast.save(path)
    loaded = cortex.load(path)
    close(loaded(TREE).out, want(TREE).out)
    close(loaded(MINUS, threads=2).out, want(MINUS).out)


@pytest.mark.parametrize(
    ("kind", "table_bytes", "is_called"), [(np.asarray, 1 << 20, True), (torch.tensor, 0, False), (np.asarray, 0, True)]
)
def test_compiled(kind: Callable[[Array], Any], table_bytes: int, is_called: bool, tmp_path: Path) -> None:
    weights = {name: kind(array) for name, array in random_weights().items()}
    fast = cortex.compile(kinds, weights, table_bytes=table_bytes)
    if is_called:
        fast(TREE)
    for array in weights.values():
        array[:] = 9
    check(fast, tmp_path / "model")


@pytest.mark.parametrize("is_called", [False, True])
def test_updated(is_called: bool, tmp_path: Path) -> None:
    fast = cortex.compile(kinds, {name: 2 * array for name, array in random_weights().items()})
    if is_called:
        fast(TREE)
    weights = random_weights()
    fast.update(weights)
    for array in weights.values():
        array[:] = 9
    check(fast, tmp_path / "model")


def test_a_refused_update_changes_nothing(tmp_path: Path) -> None:
    fast = cortex.compile(kinds, random_weights(), weights_dtype="fp16")
    before = fast(TREE).out
    with pytest.raises(cortex.ModelError):
        fast.update({**random_weights(), "U": np.full((SIZE, SIZE), 1e30)})  # too large for 16 bits
    close(fast.weights["U"], random_weights()["U"])
    close(fast(TREE, threads=2).out, before)


def test_what_the_model_closes_over() -> None:
    scale = np.full(SIZE, 2, np.float32)

    @cortex.model
    def scaled(node: Any, w: Any) -> Any:
        return scale * w.b + (w.b if node.op == "minus" else 0 * w.b)

    fast = cortex.compile(scaled, random_weights())
    want = fast(Node(0)).out
    scale[:] = 5
    close(fast(Node(0), threads=2).out, want)
    close(fast.interpret(Node(0, op="minus"))["out"][0], 3 * random_weights()["b"])


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.U = torch.nn.Embedding(10, SIZE), torch.nn.Linear(SIZE, SIZE)

    def forward(self, node: Any, twice: bool = False) -> Any:
        x = self.emb(torch.tensor(node.word))
        if node.before is not None:
            x = x + self.U(self(node.before, twice))
        return 2 * x if twice else x


CHAIN = SimpleNamespace(word=1, before=SimpleNamespace(word=2, before=None))


@pytest.mark.parametrize(("examples", "is_updated"), [(None, False), ([CHAIN], True)])
def test_modules(examples: Any, is_updated: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Module().eval()
    with torch.no_grad():
        if is_updated:
            fast = cortex.compile(Module().eval(), examples=examples)
            fast.update(module.state_dict())
        else:
            fast = cortex.compile(module, examples=examples)
        want, want_twice = module(CHAIN), module(CHAIN, True)
        for parameter in module.parameters():
            parameter.mul_(3)
    torch.testing.assert_close(fast(CHAIN), want)
    torch.testing.assert_close(fast(CHAIN, True), want_twice)  # is compiled now
    fast.save(tmp_path / "module")
    torch.testing.assert_close(cortex.load(tmp_path / "module", as_torch=True)(CHAIN, True), want_twice)
    fast.update(module.state_dict())
    torch.testing.assert_close(fast(CHAIN), module(CHAIN))
    torch.testing.assert_close(fast(CHAIN, True), module(CHAIN, True))


def test_weights_in_use_cannot_be_written() -> None:
    fast = cortex.compile(kinds, random_weights())
    fast(TREE)
    for name in random_weights():
        with pytest.raises(ValueError, match="read-only"):
            fast.weights[name][:] = 0


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize("is_loaded", [False, True])
def test_large_weights_are_in_memory_once(is_loaded: bool, tmp_path: Path) -> None:
    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    weights = {"emb": np.ones((200_000, 75), np.float32), "U": np.eye(75, dtype=np.float32), "b": np.ones(75)}
    if is_loaded:
        cortex.compile(kinds, weights, examples=[TREE]).save(tmp_path / "model")
    cortex.compile(kinds, {**weights, "emb": np.ones((10, 75))})(TREE)
    size, before = weights["emb"].nbytes, resident()
    fast = cortex.load(tmp_path / "model") if is_loaded else cortex.compile(kinds, weights)
    for _ in range(2):
        fast(TREE)
        fast(TREE, threads=2)
        assert resident() - before < 1.5 * size
        fast.update(weights)
