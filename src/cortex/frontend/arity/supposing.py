"""Answers about a node that has another number of children than the one at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cortex.frontend.facts import ABSENT, Answer, Exploring, Oracle, Path, Seen
from cortex.frontend.signals import Impossible, NeedsExample
from cortex.ra.ir import Counts, IsAboveLeaves, IsLeaf, IsNone, Item, Length, Test


def supposing(
    oracle: Oracle,
    lengths: Mapping[str, int],
    facts: Mapping[Test, Answer] | None = None,
    *,
    imagined: bool = False,
    order: int = 0,
) -> Oracle:
    """An oracle like `oracle` that supposes these lengths of the node's own lists, and other facts.

    Where a real node has no child at all, others are like none that there is: NeedsExample, or with `imagined` a child
    of which nothing is known but that its attributes are not None. `order` says in which of several ways items of
    different lists are mixed.
    """
    facts = {**(facts or {}), **{Length(name): n for name, n in lengths.items()}}
    if isinstance(oracle, Seen):
        return Supposed(oracle, lengths, facts, imagined, order)
    assert isinstance(oracle, Exploring)
    return Exploring({**oracle.forced, **facts}, oracle.knowledge)


class Supposed(Seen):
    """A real node, as if it had other numbers of children.

    Child i of a list is the real child i, or if there are fewer, one of those there are.
    """

    def __init__(
        self,
        seen: Seen,
        lengths: Mapping[str, int],
        facts: Mapping[Test, Answer],
        imagined: bool = False,
        order: int = 0,
    ) -> None:
        super().__init__(seen.node, seen.knowledge)
        self.lengths = lengths
        self.facts = facts
        self.imagined = imagined
        self.order = order

    def answer(self, test: Test) -> Answer:
        """What is supposed, else what is true of the real node."""
        if test in self.facts:
            return self.facts[test]
        if not isinstance(test, IsLeaf | IsAboveLeaves) and (real := self._real(test.name, test.path)) != test.name:
            return super().answer(replace(test, name=real))
        match test:
            case IsLeaf(()) if any(self.lengths.values()):
                return False
            case Counts(_, relation, ()) if relation in self.lengths:
                return True
            case IsNone(_, (Item(relation), *_)) if relation in self.lengths and self._imagines(relation):
                return False
        match test.path:
            case (Item(relation), *_) if relation in self.lengths and self._imagines(relation):
                raise Impossible
            case _:
                return super().answer(test)

    def _imagines(self, name: str) -> bool:
        """Are there no children in the list that could stand for the supposed ones?"""
        return self.imagined and not self.knowledge.accessors.items(self.node, name)

    def _real(self, name: str, path: Path) -> str:
        """The item of a list of numbers that stands for a supposed one; other names stand for themselves."""
        accessors = self.knowledge.accessors
        item = None if path else accessors.item(name)
        if item is None or item[0] not in self.lengths:
            return name
        there = len(accessors.items(self.node, item[0]))
        if there == 0:
            raise NeedsExample(f"a node with something in '{item[0]}'")
        return accessors.name_of_item(item[0], item[1] % there)

    def is_missing(self, name: str, path: Path) -> object | None:
        """The object, if it has no such attribute."""
        name = self._real(name, path)
        return None if path and self._imagines(path[0].name) else super().is_missing(name, path)

    def sample(self, name: str, path: Path) -> Any:
        """The attribute's value; a list of the supposed length."""
        name = self._real(name, path)
        value = super().sample(name, path)
        is_supposed = value is None and self.facts.get(IsNone(name, path)) is False
        if is_supposed and self.knowledge.model.explores:  # of modules, None stands for what is not known
            return ABSENT
        if path or name not in self.lengths or not isinstance(value, list | tuple):
            return value
        if not value and self.imagined:
            return value
        if not value and self.lengths[name]:
            value = self._elsewhere(name)
        return type(value)(value[i % len(value)] for i in range(self.lengths[name]))

    def _elsewhere(self, name: str) -> list[Any]:
        """Items of such a list of other nodes."""
        found = self.knowledge.examples.get(name)
        if not found:
            raise NeedsExample(f"a node with children in '{name}'")
        return found

    def resolve(self, path: Path) -> Any:
        """The real node that stands for the one at `path`."""
        match path:
            case (Item(name, index), *rest) if name in self.lengths:
                there = self.knowledge.accessors.items(self.node, name) or self._elsewhere(name)
                return Seen(there[index % len(there)], self.knowledge).resolve(tuple(rest))
            case _:
                return super().resolve(path)
