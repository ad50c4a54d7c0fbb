"""Requests that were bound before an update have the new weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex

SIZE = 12


@cortex.model
def tree(node: Any, w: Any) -> Any:
    below = cortex.sum(tree(k, w) for k in node.children)
    if node.op == "minus":
        return cortex.tanh(w.emb[node.word] - w.U @ below)
    return cortex.tanh(w.emb[node.word] + w.U @ below)


def Node(word: int, *children: Any, op: str = "plus") -> Any:
    return SimpleNamespace(word=word, children=list(children), op=op)


def weights(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(SIZE, SIZE)).astype(np.float32) for name in ("emb", "U")}


TREE = Node(1, Node(2), Node(3, Node(4)))
MINUS = Node(1, Node(2, op="minus"), op="minus")


def expected(seed: int) -> Any:
    return cortex.compile(tree, weights(seed), examples=[TREE])([TREE]).out


@pytest.mark.parametrize("table_bytes", [0, 1 << 20])
def test_bound_requests_have_new_weights(table_bytes: int, tmp_path: Path) -> None:
    fast = cortex.compile(tree, weights(0), examples=[TREE], table_bytes=table_bytes)
    first, out = fast.bind([TREE]), np.empty((1, SIZE), np.float32)
    given = fast.bind([TREE], out=out)
    result = first()
    np.testing.assert_allclose(result.out, expected(0), atol=1e-6)
    fast.update(weights(1))
    np.testing.assert_allclose(first().out, expected(1), atol=1e-6)
    given()
    np.testing.assert_allclose(out, expected(1), atol=1e-6)
    assert first() is result  # the same arrays
    fast(MINUS)  # compiled again; the requests keep their program
    fast.update(weights(2))
    np.testing.assert_allclose(first().out, expected(2), atol=1e-6)
    given()
    np.testing.assert_array_equal(out, first().out)
    first.fields["word"][:] = first.fields["word"][::-1].copy()
    np.testing.assert_array_equal(first().out, fast.bind([_with_words(first.fields["word"])])().out)
    fast.save(tmp_path / "saved.cortex")
    loaded = cortex.load(tmp_path / "saved.cortex")
    bound = loaded.bind([TREE])
    loaded.update(weights(0))
    np.testing.assert_allclose(bound().out, expected(0), atol=1e-6)


def _with_words(words: Any) -> Any:
    """TREE with these words, in the order that bound fields have."""
    probe = cortex.compile(tree, weights(0), examples=[TREE]).bind([TREE])
    place = {int(word): i for i, word in enumerate(probe.fields["word"])}
    return Node(words[place[1]], Node(words[place[2]]), Node(words[place[3]], Node(words[place[4]])))


def test_a_refused_update_leaves_bound_requests(tmp_path: Path) -> None:
    fast = cortex.compile(tree, weights(0), examples=[TREE])
    bound = fast.bind([TREE])
    with pytest.raises(cortex.ModelError, match="has shape"):
        fast.update({**weights(1), "U": np.ones((3, 3))})
    np.testing.assert_allclose(bound().out, expected(0), atol=1e-6)
