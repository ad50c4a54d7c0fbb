"""The facts about a node that the model's control flow asks for, in the order it asks.

`Facts` belongs to the trace of one kind: its recorded questions and answers are the kind's guard. Answers come
from an oracle: `Exploring` assumes them (no structure is at hand), `Seen` reads them off a real node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol, assert_never

import numpy as np

from cortex.errors import StructureError
from cortex.frontend.computed import is_comparable, keeps_equality, plain_of
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, NeedsExample, OneByOne
from cortex.ra.ir import (
    Compares,
    Counts,
    Each,
    Equals,
    Fact,
    HasLength,
    Hop,
    IsAboveLeaves,
    IsLeaf,
    IsNone,
    Item,
    Length,
    Order,
    Slot,
    Test,
    Value,
)

Answer = bool | int | float | str | None
Path = tuple[Hop, ...]
Shapes = dict[tuple[Any, ...], list[tuple[int, ...]]]
"""What reductions of several values got, by where in the user's code they are: a shape for each time it ran."""

ORDER: dict[Order, Callable[[Any, Any], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
MOST_SURE = 2**11
"""Integers up to this are told apart by every class of numbers."""
ABSENT = object()
"""What an oracle shows for an attribute whose value it does not know."""


class Oracle(Protocol):
    """Where answers come from."""

    @property
    def knowledge(self) -> Knowledge:
        """What is known of the model."""

    def answer(self, test: Test) -> Answer:
        """The answer to a question, or NeedsExample."""

    def sample(self, name: str, path: Path) -> Any:
        """A real value of the attribute, or ABSENT where there is none to look at."""

    def is_missing(self, name: str, path: Path) -> object | None:
        """The real object that lacks the attribute altogether, or None."""


class Facts:
    """The questions of one trace with their answers; asking twice records once.

    A trace `at_once` gets one stand-in for all children of a list that it iterates, whatever their number. Such a trace
    is a guess, which has to be compared with traces that take the children one by one.
    """

    def __init__(self, oracle: Oracle, *, at_once: bool = False, expected: Shapes | None = None) -> None:
        self.oracle = oracle
        self.known: dict[Test, Answer] = {}
        self.at_once = at_once
        self.iterated: dict[str, None] = {}
        """The lists of the node of which one stand-in was taken for all children."""
        self.told_by: Callable[[Test], tuple[Answer] | None] | None = None
        """Answers that need no question."""
        self.shapes: Shapes = {}
        self.expected: Shapes = expected or {}
        """What reductions get in a trace with more children: the shapes of their results where they get nothing."""

    def start_over(self, expected: Shapes) -> None:
        """Forget what was asked and reduced; reductions of nothing have these shapes from now on."""
        self.known, self.iterated, self.shapes, self.expected = {}, {}, {}, expected

    def iterate_at_once(self, name: str) -> None:
        """All children in a list of the node are taken at once, however many there are."""
        length = Length(name)
        forced = self.oracle.forced if isinstance(self.oracle, Exploring) else {}
        if self.known.get(length) is not None or length in forced:
            raise OneByOne
        self.iterated.setdefault(name)
        if self._implied(length) is None:
            self.known[length] = None

    def ask(self, test: Test) -> Answer:
        """The answer to `test`; it becomes part of the guard unless earlier answers imply it."""
        if test in self.known:
            if self.known[test] is None and isinstance(test, Length):
                raise OneByOne
            return self.known[test]
        self.oracle.knowledge.clock.tick()
        implied = self._implied(test)
        if implied is not None:
            return implied
        told = None if self.told_by is None else self.told_by(test)
        if told is not None:
            return told[0]
        answer = self.oracle.answer(test)
        self.known[test] = answer
        return answer

    def guard(self) -> tuple[Fact, ...]:
        """Every recorded question with its answer, in order."""
        return tuple(Fact(test, answer) for test, answer in self.known.items())

    def contradict_leaf(self, path: Path) -> None:
        """Stop: a child of the node at `path` is used although that node was assumed to be a leaf."""
        if self.known.get(IsLeaf(path)) is True and isinstance(self.oracle, Exploring):
            raise Impossible

    def _implied(self, test: Test) -> Answer:
        match test:
            case Equals(name, value, path):
                known = self._value(name, path)
                return bool(known[0] == value) if known and _is_sure(known[0]) and _is_sure(value) else None
            case Compares(name, fn, bound, path):
                known = self._value(name, path)
                return ORDER[fn](known[0], bound) if known and _is_sure(known[0]) and _is_sure(bound) else None
            case Value(name, path):
                equal = self._equal(name, path)  # what equals 1 may be True, or 1.0
                return equal[0] if equal is not None and isinstance(equal[0], str | None) else None
            case Length(_, path):
                return 0 if self.known.get(IsLeaf(path)) is True else None
            case IsLeaf(path):
                lengths = (a for t, a in self.known.items() if isinstance(t, Length) and t.path == path)
                return False if any(lengths) else None
            case IsAboveLeaves() | IsNone() | HasLength() | Counts():
                return None
            case _:
                assert_never(test)

    def _value(self, name: str, path: Path) -> tuple[Answer] | None:
        """The value of the attribute, or a constant that it equals."""
        return (self.known[Value(name, path)],) if Value(name, path) in self.known else self._equal(name, path)

    def _equal(self, name: str, path: Path) -> tuple[Answer] | None:
        """The constant the attribute is known to equal."""
        for test, answer in self.known.items():
            if isinstance(test, Equals) and answer is True and test.name == name and test.path == path:
                return (test.value,)
        return None


def _is_sure(value: Answer) -> bool:
    """Does everything that equals the value compare alike? Of NumPy's floats, more numbers equal one than it is."""
    return not isinstance(value, float) and (not isinstance(value, int) or abs(value) <= MOST_SURE)


class Exploring:
    """Answers without a structure: forced ones first, then the usual case."""

    def __init__(self, forced: Mapping[Test, Answer], knowledge: Knowledge) -> None:
        self.forced = forced
        self.knowledge = knowledge
        self.leaf: set[Path] = set()

    def answer(self, test: Test) -> Answer:
        """The assumed answer."""
        answer = self.forced[test] if test in self.forced else self._usual(test)
        if isinstance(test, IsLeaf) and answer is True:
            self.leaf.add(test.path)
        return answer

    def _usual(self, test: Test) -> Answer:
        match test:
            case IsLeaf() | IsAboveLeaves() | Equals() | Counts():
                return True
            case IsNone(name, path):
                return path in self.leaf and name in self.knowledge.slots
            case Length(name) | HasLength(name):
                raise NeedsExample(f"the number of children in '{name}'")
            case Compares(name) | Value(name):
                raise NeedsExample(f"the value of '{name}'")
            case _:
                assert_never(test)

    def sample(self, name: str, path: Path) -> Any:
        """Nothing: there is no node."""
        return ABSENT

    def is_missing(self, name: str, path: Path) -> object | None:
        """None: what an assumed node lacks is None."""
        return None


class Seen:
    """Answers read off a real node."""

    def __init__(self, node: object, knowledge: Knowledge, *, assume_inner: bool = False) -> None:
        self.node = node
        self.knowledge = knowledge
        self.assume_inner = assume_inner
        self.accessor_error: Exception | None = None
        """What reading an attribute of the user's objects raised."""

    def answer(self, test: Test) -> Answer:
        """The node's own answer."""
        try:
            return self._answer(test)
        except Exception as error:
            self.accessor_error = error
            raise

    def _answer(self, test: Test) -> Answer:
        k = self.knowledge
        owner = self.resolve(test.path)
        match test:
            case IsLeaf():
                return not self.assume_inner and not k.children(owner)
            case IsAboveLeaves():
                below = k.children(owner)
                return bool(below) and not any(k.children(child) for child in below)
            case IsNone(name):
                return k.accessors.read(owner, name, None) is None
            case Length(name):
                return len(k.accessors.items(owner, name))
            case HasLength(name, count):
                return len(k.accessors.items(owner, name)) == count
            case Counts(name, relation):
                count = k.accessors.read(owner, name, None)
                is_count = isinstance(count, int | np.integer) and not isinstance(count, bool)
                return is_count and int(count) == len(k.accessors.items(owner, relation))
            case Equals(name, value):
                return bool(comparable(k.accessors.read(owner, name, None), name, owner) == value)
            case Compares(name, fn, bound):
                value = comparable(k.accessors.read(owner, name, None), name, owner)
                if isinstance(value, str | None):
                    raise StructureError(
                        f"the model compares attribute '{name}' of a {type(owner).__name__} with {bound!r}, but its "
                        f"value is {value!r:.60}; it must be a number."
                    )
                return bool(ORDER[fn](value, bound))
            case Value(name):
                return plain(k.accessors.read(owner, name, None), name, owner)
            case _:
                assert_never(test)

    def sample(self, name: str, path: Path) -> Any:
        """The attribute's value."""
        try:
            return self.knowledge.accessors.read(self.resolve(path), name, ABSENT)
        except NeedsExample:
            return ABSENT
        except Exception as error:
            self.accessor_error = error
            raise

    def is_missing(self, name: str, path: Path) -> object | None:
        """The object, if it has no such attribute."""
        owner = self.resolve(path)
        return owner if self.knowledge.accessors.read(owner, name, ABSENT) is ABSENT else None

    def resolve(self, path: Path) -> Any:
        """The node at the end of a path."""
        node = self.node
        for hop in path:
            match hop:
                case Slot(name):
                    node = self.knowledge.accessors.read(node, name, None)
                case Item(name, index):
                    node = self.knowledge.accessors.items(node, name)[index]
                case Each(name):
                    items = self.knowledge.accessors.items(node, name)
                    if not items:
                        raise NeedsExample(f"a node with children in '{name}'")
                    node = items[0]
                case _:
                    assert_never(hop)
        return node


def is_compatible(guard: tuple[Fact, ...], other: tuple[Fact, ...]) -> bool:
    """May both be true of nodes that differ in numbers of children only: is no other question answered in two ways?"""
    answers: dict[Test, Answer] = {fact.test: fact.answer for fact in guard if not isinstance(fact.test, Length)}
    return all(answers.get(fact.test, fact.answer) == fact.answer for fact in other)


def is_plain(value: object) -> bool:
    """Can a guard hold this value?"""
    return isinstance(value, str | int | float | bool | np.generic)


def comparable(value: object, name: str, owner: object) -> Any:
    """An attribute's value, which Python compares as its class says."""
    if is_comparable(value):
        return value
    if isinstance(value, str | int | float):
        raise _own_comparison(value, name, owner)
    raise _no_plain_value(value, name, owner)


def plain(value: object, name: str, owner: object) -> Answer:
    """An attribute's value as a guard can hold it."""
    match value:
        case np.generic():
            return value.item()  # type: ignore[no-any-return]
        case bool() | None:
            return value
        case int() | float() | str() if keeps_equality(value):
            return plain_of(value)
        case int() | float() | str():
            raise _own_comparison(value, name, owner)
        case _:
            raise _no_plain_value(value, name, owner)


def _own_comparison(value: object, name: str, owner: object) -> StructureError:
    base = "str" if isinstance(value, str) else "int" if isinstance(value, int) else "float"
    return StructureError(
        f"the model looks at the value of attribute '{name}' of a {type(owner).__name__}, which is a "
        f"{type(value).__name__} that compares in its own way. Pass e.g. "
        f'fields={{"{name}": lambda node: {base}(node.{name})}}.'
    )


def _no_plain_value(value: object, name: str, owner: object) -> StructureError:
    return StructureError(
        f"the model compares attribute '{name}' of a {type(owner).__name__}, but its value is a "
        f"{type(value).__name__}; only str, int, float and bool can decide what a model does. Pass e.g. "
        f'fields={{"{name}": lambda node: str(node.{name})}}.'
    )
