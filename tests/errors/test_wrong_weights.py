"""Weights that a model cannot have: one golden message each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_models import SMALL, Node

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


def test_a_rowless_table(golden: Callable[[str, str], None]) -> None:
    fast = cortex.compile(SMALL["tree"].model, {"emb": np.ones((0, 4)), "U": EYE})
    with pytest.raises(cortex.StructureError) as caught:
        fast(LEAF)
    golden("errors/structure/word_of_empty_table", f"{type(caught.value).__name__}: {caught.value}")
