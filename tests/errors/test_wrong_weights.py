"""Weights that a model cannot have: one golden message each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import SMALL, Node, graph

import cortex

LEAF = Node(word=1)
EYE = np.eye(4)
WRONG_WEIGHTS: dict[str, Any] = {
    "missing": {"emb": np.ones((10, 4))},
    "misspelt": {"Emb": np.ones((10, 4)), "U": EYE},
    "shape": {"emb": np.ones((10, 4)), "U": np.ones((3, 4))},
    "rank": {"emb": np.ones((10, 4)), "U": np.float32(3)},
    "scalar_table": {"emb": 3.0, "U": EYE},
    "text": {"emb": np.array(["a"]), "U": EYE},
    "objects": {"emb": np.array([[None]]), "U": EYE},
    "ragged": {"emb": [[1, 2], [3]], "U": EYE},
    "complex": {"emb": np.ones((10, 4), complex), "U": EYE},
    "inexact_integers": {"emb": np.full((10, 4), 2**30), "U": EYE},
    "too_large": {"emb": np.full((10, 4), 1e300), "U": EYE},
    "masked": {"emb": np.ma.array(np.ones((10, 4)), mask=True), "U": EYE},
    "none": {"emb": None, "U": EYE},
    "not_a_mapping": [EYE],
    "no_such_file": "no/such/weights.npz",
    "unknown_format": __file__,
    "no_weights": None,
}


@pytest.mark.parametrize("name", WRONG_WEIGHTS)
def test_wrong_weights(name: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(SMALL["tree"].model, WRONG_WEIGHTS[name])(LEAF)
    text = str(caught.value).replace(__file__, "wrong_weights.py")
    golden(f"errors/weights/{name}", f"{type(caught.value).__name__}: {text}")


def test_weights_that_are_right() -> None:
    table = np.ones((10, 4))
    table[3] = np.nan
    fast = cortex.compile(SMALL["tree"].model, {"emb": table, "U": np.eye(4, dtype=int), "unused": np.ones(3)})
    assert np.isnan(fast(Node(word=3)).out).all()
    assert np.isnan(fast(Node(Node(word=3), LEAF)).out).all()
    np.testing.assert_allclose(fast(Node(LEAF, LEAF)).out, np.tanh(np.full(4, 2.0)), rtol=1e-6)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_damaged_files(suffix: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    path = tmp_path / f"damaged.{suffix}"
    path.write_bytes(b"PK\x03\x04 and so on")
    fast = cortex.compile(SMALL["tree"].model, {"emb": np.ones((10, 4)), "U": EYE})
    for use in (lambda: cortex.compile(SMALL["tree"].model, path), lambda: fast.update(path)):
        with pytest.raises(cortex.ModelError) as caught:
            use()
        text = str(caught.value).replace(str(tmp_path), "")
        golden(f"errors/weights/damaged_{suffix}", f"{type(caught.value).__name__}: {text}")


@pytest.mark.parametrize("weights", [None, 3, {"emb": np.ones((10, 4))}, {"emb": np.ones((9, 4)), "U": EYE}])
def test_wrong_updates(weights: Any, golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(SMALL["tree"].model, {"emb": np.ones((10, 4)), "U": EYE})
    with pytest.raises(cortex.ModelError) as caught:
        fast.update(weights)
    name = {type(None): "none", int: "number"}.get(type(weights)) or ("shape" if "U" in weights else "missing")
    golden(f"errors/weights/update_{name}", f"{type(caught.value).__name__}: {caught.value}")
    np.testing.assert_array_equal(fast(LEAF).out, np.ones(4))


def test_a_rowless_table_that_pays_as_a_table() -> None:
    @cortex.model
    def through(node: Any, w: Any) -> Any:
        if node.op == "word":
            return cortex.tanh(w.U @ w.emb[node.word])
        return w.b

    weights = {"emb": np.ones((0, 4)), "U": EYE, "b": np.arange(4)}
    fast = cortex.compile(through, weights, examples=[Node(op="none")])
    np.testing.assert_array_equal(fast(Node(op="none")).out, np.arange(4))
    with pytest.raises(cortex.StructureError, match="the table it indexes has no rows"):
        fast(Node(op="word", word=0))
    assert cortex.compile(graph, {"emb": np.ones((0, 4)), "U": EYE})([]).out.shape == (0, 4)


def test_a_rowless_table(golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(SMALL["tree"].model, {"emb": np.ones((0, 4)), "U": EYE})
    with pytest.raises(cortex.StructureError) as caught:
        fast(LEAF)
    golden("errors/structure/word_of_empty_table", f"{type(caught.value).__name__}: {caught.value}")


@pytest.mark.parametrize("wrong", ["x", -1, 1.5, True])
def test_wrong_table_bytes(wrong: Any) -> None:
    with pytest.raises(cortex.ModelError, match="give a number of bytes, 0 for no tables"):
        cortex.compile(SMALL["tree"].model, {"emb": np.ones((10, 4)), "U": EYE}, table_bytes=wrong)
