"""Objects that change themselves, their neighbours and their classes while they are read.

Nothing that the walk has borrowed may be gone when it is used: these tests crash, or fail under AddressSanitizer, where
it is. The values are right wherever plain Python would have read the same ones.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import cortex
from cortex import Forest
from cortex.errors import StructureError

EMB = np.arange(20, dtype=np.float32).reshape(5, 4)


@cortex.model
def tree(node: Any, w: Any) -> Any:
    x = w.emb[node.word] * node.scale
    return x if node.is_leaf else x + cortex.sum(tree(k, w) for k in node.children)


@cortex.model
def pair(node: Any, w: Any) -> Any:
    if node.left is None:
        return w.emb[node.word]
    return pair(node.left, w) + pair(node.right, w)


@pytest.fixture(scope="module")
def fast() -> Any:
    made = cortex.compile(tree, {"emb": EMB})
    made(Plain([Plain([])]))
    return made


class Plain:
    def __init__(self, children: Any, word: Any = 1, scale: Any = 1.0) -> None:
        self.children, self.word, self.scale = children, word, scale


def value(word: int, scale: float = 1.0) -> Any:
    return EMB[word] * np.float32(scale)


def churn() -> list[Any]:
    """Collect what is free, and take memory of the sizes that classes, lists and nodes have."""
    gc.collect()
    return [type(f"Taken{i}", (), {"a": bytes(64)}) for i in range(4)] + [[None] * 7 for _ in range(64)]


def class_that_is_replaced(name: str, given: Any, slots: tuple[str, ...]) -> Any:
    """An object that is the only one to hold its class, until `name` is read of it."""

    class After:
        __slots__ = slots
        children, word, scale = [], 1, 1.0

        def __getattr__(self, asked: str) -> Any:
            raise AttributeError(asked)

    def read(self: Any, asked: str) -> Any:
        if asked != name:
            raise AttributeError(asked)
        type(self).__getattr__ = None  # type: ignore[method-assign]
        self.__class__ = After
        kept.append(churn())
        return given

    kept: list[Any] = []
    others = {k: v for k, v in {"children": [], "word": 1, "scale": 1.0}.items() if k != name}
    body = {"__slots__": slots, "__getattr__": read, **{k: v for k, v in others.items() if k not in slots}}
    return type("Before", (), body)()


@pytest.mark.parametrize("name", ["children", "word", "scale"])
def test_a_class_that_goes_while_it_is_read(fast: Any, name: str) -> None:
    given = {"children": [Plain([], 2)], "word": 3, "scale": 2.0}[name]
    for _ in range(5):
        node = class_that_is_replaced(name, given, ())
        want = {"children": value(1) + value(2), "word": value(3), "scale": value(1, 2.0)}[name]
        np.testing.assert_array_equal(fast(node).out, want)


def test_a_class_with_slots_that_goes() -> None:
    fast = cortex.compile(pair, {"emb": EMB})

    def make(word: int) -> Any:
        class After:
            __slots__ = ("left", "right", "word")

        def read(self: Any, asked: str) -> Any:
            self.__class__ = After
            self.left = self.right = None
            kept.append(churn())
            return None

        kept: list[Any] = []
        node = type("Before", (), {"__slots__": ("left", "right", "word"), "__getattr__": read})()
        node.word = word
        return node

    class Top:
        def __init__(self, left: Any, right: Any) -> None:
            self.left, self.right = left, right

    for _ in range(5):
        np.testing.assert_array_equal(fast(Top(make(1), make(2))).out, value(1) + value(2))


class Clearing:
    """A value that empties a list when it is asked for a number."""

    def __init__(self, number: float, target: list[Any]) -> None:
        self.number, self.target = number, target

    def _clear(self) -> None:
        self.target.clear()
        self.kept = churn()

    def __index__(self) -> int:
        self._clear()
        return int(self.number)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._clear()
        return np.array(self.number, np.float32)


@pytest.mark.parametrize("name", ["word", "scale"])
def test_a_list_that_is_emptied_by_a_number_in_it(fast: Any, name: str) -> None:
    children: list[Any] = []
    children += [Plain([], **{name: Clearing(2, children)}), Plain([], 3), Plain([], 4)]
    want = (value(2) if name == "word" else value(1, 2.0)) + value(1) + value(3) + value(4)
    np.testing.assert_array_equal(fast(Plain(children)).out, want)
    assert not children


def test_a_list_that_its_children_empty_and_fill(fast: Any) -> None:
    """The list of a node is read before its children are, so what they do to it comes too late."""
    children: list[Any] = []

    class Child(Plain):
        @property
        def children(self) -> Any:
            children[:] = [Plain([], 4) for _ in range(100)]
            self.kept = churn()
            return []

        @children.setter
        def children(self, value: Any) -> None: ...

    children += [Child([], 2), Child([], 3)]
    np.testing.assert_array_equal(fast(Plain(children)).out, value(1) + value(2) + value(3))


def test_a_collection_that_changes_while_it_is_iterated(fast: Any) -> None:
    class Children:
        def __init__(self, *nodes: Any) -> None:
            self.nodes = list(nodes)

        def __len__(self) -> int:
            return len(self.nodes)

        def __iter__(self) -> Any:
            while self.nodes:
                yield self.nodes.pop()
                self.kept = churn()

    holder = Plain(None)
    holder.children = Children(Plain([], 2), Plain([], 3))
    np.testing.assert_array_equal(fast(holder).out, value(1) + value(3) + value(2))


def test_the_last_reference_to_a_node_goes(fast: Any) -> None:
    class Fading(Plain):
        @property
        def word(self) -> Any:
            top.children = None
            self.kept = churn()
            return 2

        @word.setter
        def word(self, value: Any) -> None: ...

    top = Plain([Fading([]), Fading([])])
    np.testing.assert_array_equal(fast(top).out, value(1) + value(2) + value(2))


def test_properties_that_call_the_model(fast: Any) -> None:
    inner: list[Any] = []

    class Calling(Plain):
        depth = 0

        @property
        def scale(self) -> Any:
            if Calling.depth < 3:
                Calling.depth += 1
                inner.append(fast([Plain([Calling([], 2)]), Plain([], 3)]).out)
                Calling.depth -= 1
            return 1.0

        @scale.setter
        def scale(self, value: Any) -> None: ...

    for _ in range(3):
        np.testing.assert_array_equal(fast(Plain([Calling([], 4), Calling([], 4)])).out, value(1) + value(4) * 2)
    assert len(inner) == 3 * 2 * 3
    for each in inner:
        np.testing.assert_array_equal(each, [value(1) + value(2), value(3)])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_a_model_computes_the_same_after_an_error_inside(fast: Any, error: type[BaseException]) -> None:
    class Failing(Plain):
        @property
        def scale(self) -> Any:
            fast(Plain([Plain([])]))
            raise error("mine")

        @scale.setter
        def scale(self, value: Any) -> None: ...

    with pytest.raises(error, match="mine"):
        fast(Plain([Plain([Failing([])]), Plain([])]))
    np.testing.assert_array_equal(fast(Plain([Plain([], 2)])).out, value(1) + value(2))


def test_a_repr_that_is_interrupted_is_not_swallowed(fast: Any) -> None:
    class Odd:
        def __repr__(self) -> str:
            raise KeyboardInterrupt("mine")

    with pytest.raises(KeyboardInterrupt, match="mine"):
        fast(Plain([], Odd()))


class Resizing(dict):  # type: ignore[type-arg]
    """A mapping that takes the memory of the arrays it has given before."""

    def __getitem__(self, name: str) -> Any:
        for array in vars(self).setdefault("given", []):
            array.resize(0, refcheck=False)
        found = super().__getitem__(name)
        self.given.append(found)
        self.kept = [bytearray(4 * found.size) for _ in range(100)]
        return found


@pytest.mark.parametrize("nodes", [3, 301, 30_001])
def test_a_forest_whose_mapping_resizes_arrays(nodes: int) -> None:
    fast = cortex.compile(pair, {"emb": EMB})
    last = np.arange(nodes, dtype=np.int32)
    left, right = (np.where(last % 2 == 0, -1, last - 1).astype(np.int32) for _ in "lr")
    forest = Forest(nodes, {"left": left, "right": right}, {}, {"word": np.ones(nodes, np.int64)}, last[-2:-1])
    np.testing.assert_array_equal(fast(forest).out[0], 2 * value(1))
    object.__setattr__(forest, "slots", Resizing(left=left.copy(), right=right.copy()))
    with pytest.raises(StructureError, match="is not the array that it was made with"):
        fast(forest)
