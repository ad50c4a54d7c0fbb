"""Answers about a node that has another number of children than the one at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cortex.frontend.facts import Answer, Oracle, Path, Seen
from cortex.frontend.signals import NeedsExample
from cortex.ra.ir import Counts, Hop, IsLeaf, Item, Length, Test


class Supposing:
    """An oracle that supposes lengths of the node's own lists, and other facts; the children there are stand for all.

    Of a real node, child i of a list is the real child i, or if there are fewer, one of those there are.
    """

    def __init__(self, oracle: Oracle, lengths: Mapping[str, int], facts: Mapping[Test, Answer] | None = None) -> None:
        self.oracle = oracle
        self.lengths = lengths
        self.facts = facts or {}

    def answer(self, test: Test) -> Answer:
        """What is supposed, else what the oracle says of such a child."""
        if test in self.facts:
            return self.facts[test]
        match test:
            case Length(name, ()) if name in self.lengths:
                return self.lengths[name]
            case IsLeaf(()) if any(self.lengths.values()):
                return False
            case Counts(_, relation, ()) if relation in self.lengths:
                return True
        return self.oracle.answer(_at(test, self._real(test.path)))

    def sample(self, name: str, path: Path) -> Any:
        """What the oracle shows."""
        return self.oracle.sample(name, self._real(path))

    def is_missing(self, name: str, path: Path) -> object | None:
        """What the oracle says."""
        return self.oracle.is_missing(name, self._real(path))

    def _real(self, path: Path) -> Path:
        return tuple(self._hop(hop, path[:i]) for i, hop in enumerate(path))

    def _hop(self, hop: Hop, above: Path) -> Hop:
        """`hop`, or an item that the real node has."""
        if above or not isinstance(hop, Item) or hop.name not in self.lengths or not isinstance(self.oracle, Seen):
            return hop
        there = self.oracle.answer(Length(hop.name))
        if not isinstance(there, int) or there == 0:
            raise NeedsExample(f"a node with children in '{hop.name}'")
        return Item(hop.name, hop.index % there)


def _at(test: Test, path: Path) -> Test:
    return test if test.path == path else replace(test, path=path)
