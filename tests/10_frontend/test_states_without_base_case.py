"""Models in which every node calls the model: the states' shapes follow from the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cortex
from cortex.frontend.trace import Trace

W = np.eye(7, dtype=np.float32)


@cortex.model
def closed_over(node: Any) -> Any:
    return cortex.tanh(W @ cortex.sum(closed_over(k) for k in node.children))


@cortex.model
def one_tuple(node: Any, w: Any) -> Any:
    return (cortex.tanh(w.W @ cortex.sum(one_tuple(k, w)[0] for k in node.children)),)


@pytest.mark.parametrize(("model", "weights"), [(closed_over, None), (one_tuple, {"W": W})])
def test_shapes_come_from_arrays(model: Any, weights: Any) -> None:
    (state,) = Trace(model, weights).model().states
    assert state.type.shape == (7,)
