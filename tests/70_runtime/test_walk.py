"""Structures that break the rules, and objects that misbehave while they are walked."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from typing import Any

import pytest

from cortex import _native
from cortex.errors import StructureError


def test_cycles(node: Any, linearizer: Any) -> None:
    top = node(children=[node(children=[], word=1), node(children=[node()])])
    top.children[1].children[0].children = [top.children[1]]
    message = (
        r"^a structure must not contain a cycle, but root\.children\[1\]\.children\[0\]\.children\[0\] is "
        r"root\.children\[1\] again \(a Node\); a node may be shared, but not be below itself$"
    )
    with pytest.raises(StructureError, match=message):
        linearizer(lists=["children"]).linearize([top])


def test_a_node_below_itself(node: Any, linearizer: Any) -> None:
    top = node()
    top.left = top
    with pytest.raises(StructureError, match=r"but structures\[1\]\.left is structures\[1\] again"):
        linearizer(["left"]).linearize([node(word=1), top])


def test_a_long_path_is_shortened(node: Any, linearizer: Any) -> None:
    top = node()
    for _ in range(1000):
        top = node(left=top)
    with pytest.raises(StructureError, match=r"^node at root(\.left){6}\.\(990 steps\)(\.left){4} \(Node\): field"):
        linearizer(["left"]).linearize([top])


def test_none_is_no_structure(node: Any, linearizer: Any) -> None:
    with pytest.raises(StructureError, match=r"^structure 1 of 2 is None; a structure must be a node$"):
        linearizer().linearize([node(word=1), None])


@pytest.mark.parametrize("given", [5, "tree", {1, 2}, None])
def test_what_is_no_batch(linearizer: Any, given: Any) -> None:
    with pytest.raises(StructureError, match="give a list of structures or a Forest"):
        linearizer().linearize(given)


@pytest.mark.parametrize("children", [5, "ab", b"ab", {1: 2}, {1, 2}])
def test_what_is_no_list_of_children(node: Any, linearizer: Any, children: Any) -> None:
    with pytest.raises(StructureError, match=r"^node at root \(Node\): 'children' is .*; it must be None or a list"):
        linearizer(lists=["children"]).linearize([node(children=children)])


@pytest.mark.parametrize("others", [lambda x: [None, x], lambda x: (x, None), lambda x: deque([None, x])])
def test_none_among_children_is_for_the_model_to_see(node: Any, linearizer: Any, others: Any) -> None:
    with pytest.raises(_native.UnknownKind, match=r"root\.others\[0\]$"):
        linearizer(lists=["others"]).linearize([node(others=[node(others=others(node(word=1)))])])


@pytest.mark.parametrize("error", [ValueError("mine"), AttributeError("mine"), KeyboardInterrupt("mine")])
@pytest.mark.parametrize("name", ["left", "children", "word", "tag"])
def test_errors_of_properties_pass_unchanged(linearizer: Any, error: BaseException, name: str) -> None:
    class Raising:
        def failing(self) -> Any:
            raise error

    setattr(Raising, name, property(Raising.failing))
    tree = ("test", ("is_none", "tag", ()), {True: ("kind", 0), False: ("kind", 0)})
    with pytest.raises(type(error), match="mine") as raised:
        linearizer(["left"], ["children"], tree=tree).linearize([Raising()])
    assert raised.value is error


def test_errors_of_callables_and_iterators(node: Any, linearizer: Any) -> None:
    def failing(n: Any) -> Any:
        yield node(word=1)
        raise KeyError("mine")

    for accessor in (failing, lambda n: 1 / 0):
        with pytest.raises((KeyError, ZeroDivisionError)):
            linearizer(lists=["children"], accessors={"children": accessor}).linearize([node()])


def test_endless_structures(linearizer: Any) -> None:
    class Endless:
        @property
        def left(self) -> Endless:
            return Endless()

    with pytest.raises(StructureError, match="more than 10000 nodes, the limit of one request"):
        linearizer(["left"], max_nodes=10_000).linearize([Endless()])


def test_endless_children(node: Any, linearizer: Any) -> None:
    def forever(n: Any) -> Any:
        while True:
            yield node()

    with pytest.raises(StructureError, match="has more than 500 children, the limit of one request"):
        linearizer(lists=["children"], accessors={"children": forever}, max_nodes=500).linearize([node()])


def test_fresh_children_stay_alive_during_the_walk(linearizer: Any) -> None:
    class Fresh:
        def __init__(self, depth: int) -> None:
            self.word = depth
            self.depth = depth

        @property
        def children(self) -> list[Fresh]:
            gc.collect(0)
            return [Fresh(self.depth - 1), Fresh(self.depth - 1)] if self.depth else []

    found = linearizer(lists=["children"]).linearize([Fresh(6)])
    assert found["sizes"]["num_nodes"] == 127


def test_lists_that_change_during_the_walk(node: Any, linearizer: Any) -> None:
    class Shrinking:
        def __init__(self, owner: list[Any]) -> None:
            self.owner = owner
            self.word = 3

        @property
        def children(self) -> list[Any]:
            self.owner.clear()
            return []

    siblings: list[Any] = []
    siblings += [Shrinking(siblings) for _ in range(100)]
    assert linearizer(lists=["children"]).linearize([node(children=siblings)])["sizes"]["num_nodes"] == 101
    batch: list[Any] = []
    batch += [Shrinking(batch) for _ in range(100)]
    assert linearizer(lists=["children"]).linearize(batch)["sizes"]["num_roots"] == 100


def test_accessors_may_linearize(node: Any, linearizer: Any) -> None:
    inner = linearizer(lists=["children"], accessors={"word": lambda n: n.depth})
    leaves = node(children=[node(depth=1), node(depth=2)])
    outer: _native.Linearizer

    def word(n: Any) -> int:
        if n.depth == 0:
            return 0
        return outer.linearize([node(depth=n.depth - 1)])["sizes"]["num_nodes"]  # type: ignore[no-any-return]

    outer = linearizer(lists=["children"], accessors={"word": word})
    assert outer.linearize([leaves])["arrays"]["field_word"].tolist() == [0, 1, 1]
    assert inner.linearize([leaves])["arrays"]["field_word"].tolist() == [0, 1, 2]


def test_slots_are_read_by_offset_only_while_the_class_stays_the_same(linearizer: Any) -> None:
    Base: Any = type("Base", (), {"__slots__": ("children", "word")})
    Slotted: Any = type("Slotted", (Base,), {"__slots__": ()})

    def make(word: int) -> Any:
        made = Slotted()
        made.word = word
        return made

    reading = linearizer(lists=["children"])

    def words(top: Any) -> Any:
        return reading.linearize([top])["arrays"]["field_word"].tolist()

    top = make(5)  # `children` is never set, which is as good as None
    assert words(top) == words(top) == [5]
    Slotted.word = property(lambda self: 6)
    assert words(top) == words(top) == [6]
    del Slotted.word
    assert words(top) == [5]
    old = Base.word
    Base.word = 7
    assert words(top) == [7]
    Base.word = old
    assert words(top) == [5]
    Slotted.__getattribute__ = lambda self, name: 8 if name == "word" else None
    assert words(top) == [8]


def test_many_classes(linearizer: Any) -> None:
    classes = [type(f"C{i}", (), {"__slots__": (["pad"] * (i % 3 > 0)) + ["word"]}) for i in range(50)]
    batch = []
    for i in range(500):
        batch.append(classes[i % 50]())
        batch[-1].word = i
    assert linearizer().linearize(batch)["arrays"]["field_word"].tolist() == list(range(500))


def test_nothing_is_kept_after_a_call(node: Any, linearizer: Any) -> None:
    reading = linearizer(lists=["children"])
    for word in (1, None):
        top = node(children=[node(word=word)])
        gone = weakref.ref(top.children[0])
        if word is None:
            with pytest.raises(StructureError):
                reading.linearize([top])
        else:
            reading.linearize([top])
        del top
        assert gone() is None


def test_a_linearizer_in_a_reference_cycle_is_collected(linearizer: Any) -> None:
    class Owner:
        pass

    def make() -> weakref.ref[Any]:
        owner: Any = Owner()
        owner.linearizer = linearizer(accessors={"word": lambda n: owner})
        return weakref.ref(owner)

    gone = make()
    gc.collect()
    assert gone() is None
