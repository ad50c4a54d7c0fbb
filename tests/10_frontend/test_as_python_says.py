"""What Python says of NumPy's numbers, lists and zeros, against the function run uncompiled."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cortex
from cortex.errors import CortexError, ModelError

WEIGHTS = {
    "b": np.array([1.0, 2.0], np.float32),
    "v": np.array([np.inf, np.nan], np.float32),
    "z": np.array([-0.0, 0.0], np.float32),
}


def Node(*children: Any, **fields: Any) -> Any:
    return SimpleNamespace(**{"x": 1, "items": [1.0, 2.0], **fields}, children=list(children))


@cortex.model
def by_class(node: Any, w: Any) -> Any:
    return w.b * (2 if isinstance(node.x, int) else 3)


@cortex.model
def by_repr(node: Any, w: Any) -> Any:
    return w.b * len(repr(node.x))


@cortex.model
def by_format(node: Any, w: Any) -> Any:
    return w.b * len(f"{node.x}{node.x!r}")


@pytest.mark.parametrize("model", [by_class, by_repr, by_format])
def test_classes_of_numpy(model: Any) -> None:
    fast = cortex.compile(model, WEIGHTS, examples=[Node(x=1)], check=False)
    for x in (1, np.int64(1), np.int32(1), 1.0, np.float32(1.0), np.float64(1.5), True, np.bool_(True)):
        np.testing.assert_array_equal(fast(Node(x=x)), model(Node(x=x), WEIGHTS))


@cortex.model
def joined(node: Any, w: Any) -> Any:
    return w.b + (node.items + node.items)


@cortex.model
def repeated(node: Any, w: Any) -> Any:
    return w.b + node.items * 2


@cortex.model
def negated(node: Any, w: Any) -> Any:
    return w.b + -node.items


@pytest.mark.parametrize("model", [joined, repeated, negated])
def test_lists_do_not_compute(model: Any) -> None:
    with pytest.raises(CortexError, match=r"a Python list is used as a tensor|bad operand type for unary -: 'list'"):
        cortex.compile(model, WEIGHTS, examples=[Node()], check=False)
    as_array = {"items": lambda node: np.array(node.items, np.float32)}
    cortex.compile(model, WEIGHTS, examples=[Node()], fields=as_array)


@cortex.model
def listed(node: Any, w: Any) -> Any:
    try:
        return w.b * len(vars(node))
    except TypeError:
        return w.b


@cortex.model
def held(node: Any, w: Any) -> Any:
    try:
        return w.b * len(node.__dict__)
    except Exception:
        return w.b


@pytest.mark.parametrize("model", [listed, held])
def test_attributes_are_not_listed(model: Any) -> None:
    with pytest.raises(ModelError, match="the attributes of a node are listed"):
        cortex.compile(model, WEIGHTS, examples=[Node()], check=False)


@cortex.model
def zeros(node: Any, w: Any) -> Any:
    return cortex.concat(
        [
            w.v * 0,
            0 * w.v,
            0 + w.z,
            w.z + 0,
            0 - w.z,
            w.z - 0,
            -0.0 + w.z,
            w.z * -0.0,
            1 / (w.b * -0.0),
            1 / (w.b * 0.0),
        ]
    )


@cortex.model
def gates(node: Any, w: Any) -> Any:
    return cortex.concat([cortex.sigmoid(w.v * node.x) * 0, cortex.tanh(w.v) * cortex.zeros(2), 1 / -cortex.zeros(2)])


@pytest.mark.parametrize("model", [zeros, gates])
def test_zeros_and_what_is_not_finite(model: Any) -> None:
    found = np.asarray(cortex.compile(model, WEIGHTS, examples=[Node()], check=False)(Node(x=2)))
    wanted = np.asarray(model(Node(x=2), WEIGHTS))
    np.testing.assert_array_equal(found, wanted)
    there = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(wanted[there]))


class Parent:
    def __init__(self, *children: Any) -> None:
        self.children = list(children)


@cortex.model
def scaled_by_length(node: Any, w: Any) -> Any:
    return w.b * len(node.children) + cortex.sum(scaled_by_length(k, w) for k in node.children if k is not None)


@cortex.model
def average(node: Any, w: Any) -> Any:
    below = [average(k, w) for k in node.children if k is not None]
    return w.b + cortex.sum(below) / (1 + len(node.children))


@cortex.model
def of_two(node: Any, w: Any) -> Any:
    below = cortex.sum(of_two(k, w) for k in node.children if k is not None)
    return below + w.b * 2 if len(node.children) == 2 else below + w.b


@cortex.model
def asked(node: Any, w: Any) -> Any:
    return w.b * 2 if node.children else w.b


@cortex.model
def none_counts(node: Any, w: Any) -> Any:
    out = w.b * 1
    for k in node.children:
        out = out + (w.b * 3 if k is None else none_counts(k, w))
    return out


@cortex.model
def any_none(node: Any, w: Any) -> Any:
    first = bool(node.children) and node.children[0] is None
    return w.b * (3 if any(k is None for k in node.children) else 1) + first


@cortex.model
def summed(node: Any, w: Any) -> Any:
    return w.b + cortex.sum(summed(k, w) for k in node.children if k is not None)


@cortex.model
def taken_in_turn(node: Any, w: Any) -> Any:
    h = w.b
    for k in node.children:
        if k is not None:
            h = cortex.tanh(h + taken_in_turn(k, w))
    return h


@pytest.mark.parametrize(
    "model",
    [scaled_by_length, average, of_two, asked, none_counts, any_none, summed, taken_in_turn],
    ids=lambda m: m.name,
)
@pytest.mark.parametrize("given", [[None], [Parent(), None], [None, Parent(), Parent(None, Parent())]])
def test_none_among_children(model: Any, given: list[Any]) -> None:
    """None in a list is seen, as Python sees it."""
    fast = cortex.compile(
        model, WEIGHTS, examples=[Parent(), Parent(Parent()), Parent(Parent(), Parent())], check=False
    )
    for tree in (Parent(Parent(Parent(), Parent()), Parent()), Parent(*given), Parent()):
        np.testing.assert_allclose(fast(tree).out, model(tree, WEIGHTS), rtol=1e-5)


def test_none_among_children_after_saving(tmp_path: Path) -> None:
    cortex.compile(asked, WEIGHTS, examples=[Parent(), Parent(Parent())]).save(tmp_path / "m.cortex")
    with pytest.raises(cortex.StructureError, match="has None among the children"):
        cortex.load(tmp_path / "m.cortex")(Parent(None))
