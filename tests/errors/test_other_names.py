"""Objects whose attributes have other names than the model's: told, and never answered as if they were leaves."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_models import EMB, WEIGHTS, pair, tree

import cortex


class Kin:
    """A node whose children are called `kids`."""

    def __init__(self, word: int, *kids: Kin, parent: Kin | None = None) -> None:
        self.word, self.kids, self.parent = word, list(kids), parent


class Slotted:
    """A node of two children, in slots."""

    __slots__ = ("lhs", "rhs", "word")

    def __init__(self, word: int = 0, lhs: Any = None, rhs: Any = None) -> None:
        self.word, self.lhs, self.rhs = word, lhs, rhs


class Inner:
    """An inner node of another class than the leaves."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Leaf:
    """A leaf that has nothing but its word."""

    def __init__(self, word: int) -> None:
        self.word = word


@cortex.model
def by_length(node: Any, w: Any) -> Any:
    """What it reads depends on the number of children."""
    if node.is_leaf:
        return w.emb[node.word]
    return by_length(node.children[0], w) * float(node.scale) if len(node.children) == 1 else w.emb[0]


KIN = Kin(1, Kin(2), Kin(3, Kin(4)))
SLOTTED = Slotted(0, Slotted(1), Slotted(2))

WRONG: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "children": (tree, KIN, {}),
    "children_of_batch": (tree, [Kin(5), KIN], {}),
    "children_of_another_class": (tree, Inner(word=1, kids=(Leaf(1), Leaf(2))), {}),
    "children_named": (tree, KIN, {"children": "kidz"}),
    "children_tuple": (tree, SLOTTED, {"children": ("lhs", "rsh")}),
    "slots": (pair, SLOTTED, {}),
    "slot": (pair, Inner(left=Leaf(1), rigth=Leaf(2)), {}),
    "slot_named": (pair, SLOTTED, {"fields": {"left": "lhs", "right": "rsh"}}),
    "field_named": (tree, KIN, {"children": "kids", "fields": {"word": "wrod"}}),
}


@pytest.mark.parametrize("when", ["before", "at_call"])
@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str, when: str, golden: Callable[[str, str], None]) -> None:
    """Whether the kinds were learned from an example or beforehand makes no difference to what is refused."""
    model, given, options = WRONG[name]
    with pytest.raises(cortex.StructureError) as caught:
        if when == "before":
            options = options | {"examples": given}
        cortex.compile(model, WEIGHTS, **options)(given)
    golden(f"errors/names/{name}_{when}", f"{type(caught.value).__name__}: {caught.value}")


RIGHT: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "leaf_without_children": (tree, Leaf(3), {}),
    "leaf_without_slots": (pair, Leaf(3), {}),
    "leaf_below_its_parent": (tree, Kin(3, parent=KIN), {}),
    "leaf_of_a_named_list": (tree, Kin(3), {"children": "kids"}),
    "leaf_without_the_named_list": (tree, Leaf(3), {"children": "kids"}),
    "leaves": (tree, [Leaf(3), Leaf(3)], {}),
    "function": (tree, Leaf(3), {"children": lambda node: ()}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_leaves_are_leaves(name: str) -> None:
    model, given, options = RIGHT[name]
    fast = cortex.compile(model, WEIGHTS, **options)
    out = fast(given).out
    np.testing.assert_array_equal(out, np.broadcast_to(EMB[3], out.shape))


def test_leaves_may_lack_what_inner_nodes_have() -> None:
    given = Inner(kids=[Leaf(1), Inner(kids=[Leaf(2)])])
    fast = cortex.compile(tree, WEIGHTS, children="kids")
    assert len(fast(given).nodes.out) == 4
    np.testing.assert_array_equal(fast(Leaf(3)).out, EMB[3])
    fast = cortex.compile(tree, WEIGHTS, children=("first", "second"))
    assert len(fast(Inner(first=Leaf(1), second=Inner(first=Leaf(2)))).nodes.out) == 4
    assert len(fast(Inner(first=Leaf(1))).nodes.out) == 2


UNREAD: dict[str, tuple[Any, dict[str, Any]]] = {
    "misspelt": (tree, {"wrod": "token"}),
    "unlike_any": (tree, {"token": lambda node: node.id}),
}


@pytest.mark.parametrize("name", UNREAD)
def test_fields_that_the_model_never_reads(name: str, golden: Callable[[str, str], None]) -> None:
    model, fields = UNREAD[name]
    with pytest.raises(cortex.ModelError) as caught:
        cortex.compile(model, WEIGHTS, fields=fields)
    golden(f"errors/names/unread_{name}", f"{type(caught.value).__name__}: {caught.value}")


def test_fields_that_a_later_kind_may_read() -> None:
    """Only a structure tells how many children there are, and what the model reads then."""
    with pytest.warns(UserWarning, match=r"has not read node\.wrod so far\. Did you mean 'word'\?"):
        cortex.compile(by_length, WEIGHTS, fields={"wrod": "token"})
    fast = cortex.compile(by_length, WEIGHTS, fields={"scale": lambda node: 2.0})
    given = SimpleNamespace(children=[SimpleNamespace(children=[], word=3)])
    np.testing.assert_allclose(fast(given).out, 2 * EMB[3], rtol=1e-6)


def failing(node: Any) -> Any:
    if node.word == 4:
        raise LookupError("not in the store")
    return node.kids


def failing_word(node: Any) -> int:
    return len(failing(node))


class Fallible(Kin):
    """A property that fails with an AttributeError of its own."""

    @property
    def children(self) -> Any:
        return self.kids if self.word != 4 else self.cache  # type: ignore[attr-defined]


@pytest.mark.parametrize("known", [True, False])
def test_what_accessors_raise_says_where(known: bool) -> None:
    """The user's own exception, with its traceback, and a note of the node."""
    given = [Kin(7), KIN]
    examples = Kin(1, Kin(2)) if known else None
    fast = cortex.compile(tree, WEIGHTS, children=failing, examples=examples)
    with pytest.raises(LookupError, match="not in the store") as caught:
        fast(given)
    assert caught.traceback[-1].name == "failing"
    assert caught.value.__notes__ == ["while reading `children` of structures[1].children[1].children[0] (a Kin)"]
    with pytest.raises(LookupError) as caught:
        cortex.compile(tree, WEIGHTS, children="kids", fields={"word": failing_word}, examples=examples)(KIN)
    assert caught.value.__notes__ == ["while reading `word` of root.children[1].children[0] (a Kin)"]


def test_what_properties_raise_says_where() -> None:
    fast = cortex.compile(tree, WEIGHTS)
    with pytest.raises(AttributeError, match="cache") as caught:
        fast(Fallible(1, Fallible(2), Fallible(4)))
    assert caught.value.__notes__ == ["while reading `children` of root.children[1] (a Fallible)"]
