"""Outputs can be pickled and copied; compiled models cannot, and say what to do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

WEIGHTS = {"emb": np.eye(4, dtype=np.float32)}


@cortex.model
def two(node: Any, w: Any) -> Any:
    below = cortex.sum(two(k, w).h for k in node.children)
    return cortex.state(h=w.emb[node.word] + below, c=2 * w.emb[node.word])


def Node(word: int, *children: Any) -> Any:
    return SimpleNamespace(word=word, children=list(children))


TREES = [Node(1, Node(2)), Node(3)]


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
@pytest.mark.parametrize("given", [TREES, TREES[0]])
@pytest.mark.parametrize("is_bound", [False, True])
def test_outputs(copied: Callable[[Any], Any], given: Any, is_bound: bool) -> None:
    fast = cortex.compile(two, WEIGHTS)
    out = fast.bind(given)() if is_bound else fast(given)
    again = copied(out)
    assert type(again) is type(out)
    assert repr(again) == repr(out)
    assert len(again) == 2
    for name in ("h", "c"):
        np.testing.assert_array_equal(getattr(again, name), getattr(out, name))
        np.testing.assert_array_equal(again[name], out[name])
        np.testing.assert_array_equal(again.nodes[name], out.nodes[name])
        np.testing.assert_array_equal(copied(out.nodes)[name], out.nodes[name])
    np.testing.assert_array_equal(copied(again).nodes.h, out.nodes.h)


def test_names_are_listed_once() -> None:
    names = dir(cortex.compile(two, WEIGHTS)(TREES))
    assert {"h", "c", "nodes"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_models(copied: Callable[[Any], Any]) -> None:
    fast = cortex.compile(two, WEIGHTS, examples=TREES)
    again = copied(fast)
    np.testing.assert_array_equal(again(TREES).h, fast(TREES).h)
    fast.update({"emb": 3 * WEIGHTS["emb"]})
    np.testing.assert_array_equal(copied(copied(fast))(TREES).nodes.c, fast(TREES).nodes.c)
    assert not np.array_equal(again(TREES).h, fast(TREES).h)


def test_modules() -> None:
    torch = pytest.importorskip("torch")

    class Sum(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(5, 4)

        def forward(self, node: Any) -> Any:
            x = self.emb(torch.tensor(node.word))
            return torch.tanh(x + sum((self(k) for k in node.children), torch.zeros_like(x)))

    fast = cortex.compile(Sum().eval(), examples=TREES)
    again = pickle.loads(pickle.dumps(fast))
    assert isinstance(again(TREES[0]), torch.Tensor)
    assert torch.equal(again(TREES), fast(TREES))
    assert torch.equal(pickle.loads(pickle.dumps(again))(TREES), fast(TREES))


def test_models_with_functions_cannot_be_pickled(golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(two, WEIGHTS, children=lambda node: node.children, examples=TREES)
    with pytest.raises(TypeError) as caught:
        pickle.dumps(fast)
    golden("errors/model/pickled", f"{type(caught.value).__name__}: {caught.value}")
