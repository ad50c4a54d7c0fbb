"""From a model's kinds to the spec of its linearizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cortex import _native
from cortex.errors import InternalError, StructureError
from cortex.frontend.fields import Accessors
from cortex.ra.ir import (
    Each,
    Equals,
    Fact,
    Field,
    FieldDecl,
    IsLeaf,
    IsNone,
    Item,
    Kind,
    Length,
    Let,
    Model,
    Slot,
    State,
    StateDecl,
    TensorType,
)
from cortex.runtime.linearize import decision_tree, linearize, linearizer_spec, padded_elements

VECTOR, WORD = TensorType((3,)), TensorType((), "i64")
LEAF, INNER = Fact(IsLeaf(), True), Fact(IsLeaf(), False)


def kind(name: str, guard: tuple[Fact, ...], *ops: Any) -> Kind:
    lets = tuple(Let(f"v{i}", op, VECTOR) for i, op in enumerate(ops))
    return Kind(name, guard, lets, ("v0",))


def model(*kinds: Kind) -> Model:
    fields = (FieldDecl("word", WORD, 10), FieldDecl("x", VECTOR))
    return Model("m", (), fields, ("left",), ("children",), (StateDecl("h", VECTOR),), kinds)


def test_guards_become_a_decision_tree() -> None:
    m = model(
        kind("leaf", (LEAF,)),
        kind("join", (INNER, Fact(Equals("op", "Join"), True))),
        kind("two", (INNER, Fact(Equals("op", "Join"), False), Fact(Length("children", (Item("children", 0),)), 2))),
    )
    length = ("length", "children", (("item", "children", 0),))
    other = ("test", ("equals", "op", "Join", ()), {True: ("kind", 1), False: ("test", length, {2: ("kind", 2)})})
    assert decision_tree(m) == ("test", ("is_leaf", ()), {True: ("kind", 0), False: other})
    assert decision_tree(model()) is None
    assert decision_tree(model(kind("all", ()))) == ("kind", 0)


@pytest.mark.parametrize(
    "kinds",
    [
        (kind("a", (LEAF,)), kind("b", (Fact(IsNone("op"), True),))),
        (kind("a", (LEAF,)), kind("b", (LEAF,))),
        (kind("a", ()), kind("b", (LEAF,))),
        (kind("b", (LEAF,)), kind("a", ())),
    ],
)
def test_guards_that_form_no_tree(kinds: Any) -> None:
    with pytest.raises(InternalError, match=r"^m: the guard of kind [ab] does not"):
        decision_tree(model(*kinds))


def test_what_kinds_read() -> None:
    m = model(
        kind("leaf", (LEAF,), Field("word"), Field("word")),
        kind(
            "inner",
            (INNER, Fact(IsNone("left"), False), Fact(Length("children"), 1)),
            Field("x", (Each("children"),)),
            State("h", (Slot("left"),)),
            State("h", (Item("children", 0),)),
            State("h", (Item("children", 1),)),
            State("h", (Slot("left"), Slot("left"))),
            State("h", (Each("children"),)),
        ),
    )
    spec = linearizer_spec(m, align=16)
    assert spec["uses"] == [["word"], []]
    assert spec["reads"] == [[], [("x", (("each", "children"),))]]
    assert spec["needs"] == [[], [(("item", "children", 1),), (("slot", "left"), ("slot", "left"))]]
    assert spec["int_fields"] == [("word", 10)]
    assert spec["float_fields"] == [("x", (3,), 16)]


def test_padding_is_that_of_the_last_dimension() -> None:
    assert [padded_elements(s, 8) for s in ((), (3,), (8,), (2, 3), (2, 3, 9))] == [1, 8, 8, 16, 96]


def test_only_what_the_user_redefined_is_an_accessor() -> None:
    m = model(kind("all", (Fact(Equals("op", 1), True),), Field("word")))
    accessors = Accessors({"op": "kind", "unused": "y"}, ("left", "right"))
    assert linearizer_spec(m, accessors)["accessors"] == {"children": ("left", "right"), "op": "kind"}


def test_linearize(node: Any) -> None:
    m = model(
        kind("leaf", (LEAF,), Field("word")),
        kind("inner", (INNER,), Field("x", (Each("children"),)), State("h", (Slot("left"),))),
    )
    a = node(token=4, x=[1, 2, 3])
    form = linearize(m, [node(kids=[a], left=a)], children="kids", fields={"word": lambda n: n.token})
    assert form.sizes["num_children_edges"] == 1
    assert form.arrays["field_word"].tolist() == [0, 4]
    assert form.fields["x"].tolist() == [[0, 0, 0], [1, 2, 3]]
    assert form.arrays["child_left"].dtype == np.int32
    with pytest.raises(StructureError, match=r"root .* has no child 'left', and the model recurses into it"):
        linearize(m, [node(kids=[a])], children="kids", fields={"word": "token"})
    with pytest.raises(_native.UnknownKind):
        linearize(model(), [a])
