"""Shapes of fields: other kinds may have other ones, and a shape that is asked for is one that is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_meaning import Node, weights
from numpy.testing import assert_allclose

import cortex
from cortex import ModelError, StructureError

THREE, FOUR = np.array([1.0, -2.0, 3.0], np.float32), np.array([1.0, -2.0, 3.0, 0.5], np.float32)


@cortex.model
def by_operator(node: Any, w: Any) -> Any:
    h = w.A @ node.x if node.op == "scan" else w.B @ node.x
    return h + cortex.sum(by_operator(k, w) for k in node.children)


def test_a_field_has_another_shape_in_another_kind() -> None:
    given = weights(A=(4, 3), B=(4, 4))
    leaf = Node(op="scan", x=THREE, children=[])
    root = Node(op="join", x=FOUR, children=[leaf, Node(op="join", x=2 * FOUR, children=[])])
    fast = cortex.compile(by_operator, given, examples=[root])
    expected = given["B"] @ (3 * FOUR) + given["A"] @ THREE
    assert_allclose(fast(root)[0], expected, rtol=1e-5)
    with pytest.raises(StructureError, match=r"has shape \(4,\); it must be an array of numbers of shape \(3,\)"):
        fast(Node(op="scan", x=FOUR, children=[]))


@cortex.model
def by_item(node: Any, w: Any) -> Any:
    h = w.b * node.x[0]
    return h if node.is_leaf else h + cortex.sum(by_item(k, w) for k in node.children)


@cortex.model
def by_length(node: Any, w: Any) -> Any:
    h = w.b * node.x[1] * len(node.x) * node.x.shape[0]
    return h if node.is_leaf else h + cortex.sum(by_length(k, w) for k in node.children)


@pytest.mark.parametrize(("model", "scale"), [(by_item, 1.0), (by_length, -18.0)])
@pytest.mark.parametrize("inner_first", [False, True])
def test_no_node_is_a_leaf_before_children_are_known(model: Any, scale: float, inner_first: bool) -> None:
    """What a field is only an example tells, and it is read before the model asks for leaves."""
    given = weights(b=(4,))
    leaf = Node(x=THREE, children=[])
    root = Node(x=THREE, children=[leaf, Node(x=THREE, children=[leaf])])
    fast = cortex.compile(model, given, examples=[root if inner_first else leaf])
    assert_allclose(fast(root)[0], given["b"] * scale * 4, rtol=1e-5)
    assert_allclose(fast(leaf)[0], given["b"] * scale, rtol=1e-5)


@cortex.model
def length_alone(node: Any, w: Any) -> Any:
    return w.b * len(node.x)


@cortex.model
def shape_alone(node: Any, w: Any) -> Any:
    return w.b if node.x.shape[0] == 3 else -w.b


@cortex.model
def shape_of_computed(node: Any, w: Any) -> Any:
    twice = node.x * 2
    return w.b * twice.size


@cortex.model
def element_type(node: Any, w: Any) -> Any:
    return w.b * node.x[0] * (2.0 if node.x.dtype == np.float32 else 3.0)


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (length_alone, THREE),
        (length_alone, [1.0, 2.0, 3.0]),
        (shape_alone, THREE),
        (shape_of_computed, THREE),
        (element_type, THREE),
    ],
)
def test_refused(model: Any, x: Any, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(ModelError) as raised:
        cortex.compile(model, weights(b=(4,)), examples=[Node(x=x)])
    golden(f"errors/model/{model.name}_asked", f"{type(raised.value).__name__}: {raised.value}")


def test_remedies_for_shapes() -> None:
    given = weights(b=(4,))
    nodes = [Node(x=THREE), Node(x=FOUR)]
    declared = cortex.compile(length_alone, given, fields={"x": cortex.field((3,))})
    assert_allclose(declared(nodes[0])[0], 3 * given["b"], rtol=1e-6)

    @cortex.model
    def by_number(node: Any, w: Any) -> Any:
        return w.b * node.length

    fast = cortex.compile(by_number, given, fields={"length": lambda node: len(node.x)}, examples=nodes)
    assert_allclose(fast(nodes[1])[0], 4 * given["b"], rtol=1e-6)
