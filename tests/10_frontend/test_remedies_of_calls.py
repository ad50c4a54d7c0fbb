"""What is said of calls in functions names the user's expression, and its remedy works as it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cortex
from cortex import ModelError

WEIGHTS = {"b": np.ones(2, np.float32)}


class Place:
    def __init__(self, line: int) -> None:
        self.line = line

    def twice(self) -> int:
        return 2 * self.line


class Node:
    def __init__(self, line: int) -> None:
        self.place, self.line = Place(line), line

    def weight(self) -> int:
        return self.line + 1


@cortex.model
def of_node(node: Any, w: Any) -> Any:
    return w.b * node.weight()


@cortex.model
def of_field(node: Any, w: Any) -> Any:
    return w.b * node.place.twice()


@pytest.mark.parametrize(("model", "want"), [(of_node, 4), (of_field, 6)])
def test_methods_of_nodes_are_called(model: Any, want: float) -> None:
    fast = cortex.compile(model, WEIGHTS, examples=[Node(1)])
    assert fast(Node(3)).out[0] == want


@cortex.model
def difference(node: Any, w: Any) -> Any:
    return w.b * (node.line - node.start)(3)


@cortex.model
def ratio(node: Any, w: Any) -> Any:
    return w.b * (node.line / 2)()


@cortex.model
def negative(node: Any, w: Any) -> Any:
    return w.b * (-node.line)()


@pytest.mark.parametrize("model", [difference, ratio, negative])
def test_numbers_that_are_called(model: Any) -> None:
    node = Node(3)
    node.start = 1  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="is called here, and a number is no function") as caught:
        cortex.compile(model, WEIGHTS, examples=[node])
    assert "computed_" not in str(caught.value)
