"""Fields: what is accepted, what is refused and how that is said, and which nodes must have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cortex.errors import StructureError
from cortex.runtime.forest import Forest


class Index:
    def __index__(self) -> int:
        return 12


def floats(linearizer: Any, shape: tuple[int, ...], padded: int | None = None) -> Any:
    elements = int(np.prod(shape)) if padded is None else padded
    return linearizer([], ["children"], int_fields=[], float_fields=[("x", shape, elements)], uses=[["x"], ["x"]])


@pytest.mark.parametrize("value", [12, np.int8(12), np.uint64(12), np.array(12), Index()])
def test_integers(node: Any, linearizer: Any, value: Any) -> None:
    assert linearizer().linearize([node(word=value)])["arrays"]["field_word"].tolist() == [12]


def test_bool_is_an_integer(node: Any, linearizer: Any) -> None:
    assert linearizer().linearize([node(word=True)])["arrays"]["field_word"].tolist() == [1]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3.0, r"field 'word' is 3.0 \(float\); it must be an integer from 0 to 999"),
        ("3", r"field 'word' is '3' \(str\); it must be an integer from 0 to 999"),
        (np.array([1, 2]), r"field 'word' is array\(\[1, 2\]\) \(ndarray\); it must be an integer"),
        (-1, r"field 'word' is -1; it must be an integer from 0 to 999"),
        (1000, r"field 'word' is 1000; it must be an integer from 0 to 999"),
        (2**40, r"field 'word' is 1099511627776; it must be"),
        (2**80, r"field 'word' is 1208925819614629174706176, which does not fit in 32 bits; it must be"),
        (None, r"field 'word' is missing or None, and the model reads it there; it must be an integer from 0 to 999"),
    ],
)
def test_integers_refused(node: Any, linearizer: Any, value: Any, message: str) -> None:
    top = node(children=[node(word=1), node(word=value)])
    with pytest.raises(StructureError, match=r"^node at root\.children\[1\] \(Node\): " + message):
        linearizer(lists=["children"]).linearize([top])


def test_integers_without_a_limit(node: Any, linearizer: Any) -> None:
    free = linearizer(int_fields=[("word", None)])
    assert free.linearize([node(word=-(2**31))])["arrays"]["field_word"].tolist() == [-(2**31)]
    with pytest.raises(StructureError, match="is 2147483648, which does not fit in 32 bits; it must be an integer"):
        free.linearize([node(word=2**31)])


def test_a_value_whose_index_raises(node: Any, linearizer: Any) -> None:
    class Broken:
        def __index__(self) -> int:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        linearizer().linearize([node(word=Broken())])


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.float64).reshape(2, 3),
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(3, 2).T.copy().T.reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        [[0, 1, 2], [3.0, 4, 5]],
        ((0, 1, 2), np.array([3, 4, 5])),
    ],
)
def test_float_arrays(node: Any, linearizer: Any, value: Any) -> None:
    for padded in (6, 32):
        found = floats(linearizer, (2, 3), padded).linearize([node(x=value, children=[node(x=value)])])["fields"]["x"]
        assert found.dtype == np.float32
        assert (found == np.arange(6).reshape(2, 3)).all()
        assert found.shape == (2, 2, 3)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5), np.float16(0.5)])
def test_float_scalars(node: Any, linearizer: Any, value: Any) -> None:
    assert floats(linearizer, ()).linearize([node(x=value)])["fields"]["x"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], r"has shape \(2,\); it must be an array of numbers of shape \(3,\)"),
        (np.zeros((3, 1)), r"has shape \(3,1\); it must be an array of numbers of shape \(3,\)"),
        (["a", "b", "c"], r"is \['a', 'b', 'c'\] \(list\); it must be an array of numbers"),
        ([[1], [2, 3]], r"is \[\[1\], \[2, 3\]\] \(list\); it must be"),
        (np.zeros(3, complex), r"it must be an array of numbers of shape \(3,\)"),
        (object(), r"is a object; it must be an array of numbers"),
        (None, r"is missing or None, and the model reads it there; it must be an array of numbers of shape \(3,\)"),
    ],
)
def test_floats_refused(node: Any, linearizer: Any, value: Any, message: str) -> None:
    with pytest.raises(StructureError, match=r"^node at root \(Node\): field 'x' .*" + message):
        floats(linearizer, (3,)).linearize([node(x=value)])


def test_fields_of_children_are_asked_of_those_only(node: Any, linearizer: Any) -> None:
    path = (("each", "children"),)
    reading = linearizer([], ["children"], uses=[[], []], reads=[[], [("word", path)]])
    top = node(children=[node(word=3), node(word=4)])
    assert reading.linearize([top])["arrays"]["field_word"].tolist() == [0, 3, 4]
    assert reading.linearize([node()])["arrays"]["field_word"].tolist() == [0]
    top.children.append(node())
    with pytest.raises(StructureError, match=r"^node at root\.children\[2\] \(Node\): field 'word' is missing"):
        reading.linearize([top])


def test_children_that_the_model_needs(node: Any, linearizer: Any) -> None:
    twice = (("slot", "left"), ("slot", "left"))
    needing = linearizer(["left"], ["children"], uses=[[], []], needs=[[], ["left", twice]])
    inner = node(left=node())
    assert needing.linearize([node(children=[])])["sizes"]["num_nodes"] == 1
    with pytest.raises(StructureError, match=r"^node at root\.left \(Node\) has no child 'left', and the model"):
        needing.linearize([inner])
    with pytest.raises(StructureError, match=r"^node at root \(Node\) has no child 'left'"):
        needing.linearize([node(children=[node()])])


def test_columns_of_a_forest(linearizer: Any) -> None:
    words, x = [5, 6, 7], np.arange(9, dtype=np.float64).reshape(3, 3)
    forest = Forest.from_parents([-1, 0, 0], fields={"word": words, "x": x, "given": (None, 8, 9)})
    both = linearizer([], ["children"], float_fields=[("x", (3,), 16)], uses=[["word", "x"], ["x"]])
    found = both.linearize(forest)
    assert found["arrays"]["field_word"].tolist() == [0, 6, 7]
    assert (found["fields"]["x"] == x).all()
    renamed = linearizer([], ["children"], accessors={"word": "given"})
    assert renamed.linearize(forest)["arrays"]["field_word"].tolist() == [0, 8, 9]
    with pytest.raises(StructureError, match=r"^node 1: field 'word' is 6; it must be an integer from 0 to 5"):
        linearizer([], ["children"], int_fields=[("word", 6)]).linearize(forest)
    with pytest.raises(StructureError, match=r"^node 1: field 'word' is missing or None"):
        linearizer([], ["children"]).linearize(Forest.from_parents([-1, 0]))
