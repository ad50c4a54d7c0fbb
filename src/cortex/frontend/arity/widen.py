"""From the kind of one number of children to a kind of any number.

A model that takes its children one by one asks how many there are, and its trace is for that number only. `widen` has
the model traced for other numbers as well, as if the node had so many children (see `supposing`). Where these traces
are instances of one pattern, the pattern is the kind of all of them, and of every other number of children. Numbers for
which the trace is something else keep kinds of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import CodeType

from cortex.frontend.arity.pattern import find_pattern, is_instance
from cortex.frontend.arity.supposing import Supposing
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.decision import DecisionTree, Traced
from cortex.frontend.facts import Answer, Facts, Oracle
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates
from cortex.frontend.trace_kind import trace_kind
from cortex.ra.ir import Fact, IsLeaf, IsNone, Item, Kind, Length, Test

Guard = tuple[Fact, ...]

FOUND_AT = (5, 8, 33)
"""The pattern is found in traces for so many children: more than code is likely to treat by themselves."""

CHECKED_AT = (0, 1, 2, 3, 4, 6, 7)
"""These numbers need not fit the pattern."""

MOST_CONSTANT = 64
"""A number up to this that the code of the model mentions is checked too, and the next one: `if len(kids) > 10`."""


def widen(k: Knowledge, tree: DecisionTree, kind: Traced, oracle: Oracle) -> bool:
    """Add a kind of any arity to the tree of which `kind`, traced with the answers of `oracle`, is an instance.

    False if there is none, or if it cannot be told yet. The reason why there is none goes to `tree.per_arity`.
    """
    lists = [test.name for test, _ in _facts(kind.guard) if isinstance(test, Length) and not test.path]
    for count in range(len(lists), 0, -1):
        for chosen in combinations(lists, count):
            key = _opened(kind.guard, chosen)
            if key in tree.per_arity:
                continue
            try:
                _Widening(k, tree, kind, oracle, chosen).run()
                return True
            except NotAlike as reason:
                where = "" if reason.span is None else f" (line {reason.span.line})"
                tree.per_arity[key] = f"{reason.reason}{where}"
            except (NeedsExample, NeedsStates):
                return False
    return False


@dataclass(frozen=True)
class _Widening:
    """One attempt: for these lists at once."""

    k: Knowledge
    tree: DecisionTree
    kind: Traced
    oracle: Oracle
    chosen: tuple[str, ...]

    def run(self) -> None:
        guard = _opened(self.kind.guard, self.chosen)
        several = [self._lengths(i) for i in range(len(FOUND_AT))]
        traces = [(lengths, self._trace(lengths)) for lengths in several]
        for _, other in traces:
            if _opened(other.guard, self.chosen) != guard:
                raise NotAlike("what it asks of a node depends on the number of its children")
        self._check_items(*traces[0])
        pattern = find_pattern(traces, tuple(self.k.lists))
        self._exclude(pattern, several[0])
        self._insert(guard, pattern)

    def _lengths(self, i: int) -> dict[str, int]:
        """Different lengths for different lists."""
        return {name: FOUND_AT[(i + j) % len(FOUND_AT)] for j, name in enumerate(self.chosen)}

    def _trace(self, lengths: Mapping[str, int], facts: Mapping[Test, Answer] | None = None) -> Traced:
        """The kind of a node with so many children."""
        traced = self._attempt(lengths, facts)
        if isinstance(traced, Traced):
            return traced
        raise NotAlike(f"it cannot be traced for {_said(lengths)}")

    def _attempt(self, lengths: Mapping[str, int], facts: Mapping[Test, Answer] | None = None) -> Traced | Guard:
        """The kind of a node with so many children; or, where the model fails, how far it got."""
        asked = Facts(Supposing(self.oracle, lengths, facts))
        try:
            return trace_kind(self.k, asked)
        except (Exception, Impossible, MissingAttribute):
            return asked.guard()

    def _check_items(self, lengths: Mapping[str, int], kind: Traced) -> None:
        """Refuse a model that does different things for different children.

        That an attribute of a child is None may be asked, if the model fails where it is or does not care.
        """
        for test, answer in _facts(kind.guard):
            index = _item(test, self.chosen)
            if index is None:
                continue
            if not isinstance(test, IsNone) or answer is True or len(test.path) > 1:
                asked = "which children it has" if isinstance(test, IsLeaf) else f"'{test.name}'"
                raise NotAlike(f"what it does depends on {asked} of a child")
            if index not in (0, max(lengths.values()) - 1):
                continue  # the others are like these
            try:
                other = self._attempt(lengths, {test: True})
            except (NeedsExample, NeedsStates):
                raise NotAlike(f"what it does where '{test.name}' of a child is None is not known") from None
            if isinstance(other, Traced) and (other.lets, other.results) != (kind.lets, kind.results):
                raise NotAlike(f"what it does depends on whether '{test.name}' of a child is None")

    def _exclude(self, pattern: Kind, base: dict[str, int]) -> None:
        """Keep lengths for which the trace is no instance of the pattern from the kind of any arity."""
        for lengths in filter(self._is_possible, self._checked(base)):
            try:
                other = self._attempt(lengths)
            except (NeedsExample, NeedsStates):
                other = self.kind.guard
            guard = other.guard if isinstance(other, Traced) else other
            same = _opened(guard, self.chosen) == _opened(self.kind.guard, self.chosen)
            if isinstance(other, Traced) and same and is_instance(other, pattern, lengths, tuple(self.k.lists)):
                continue
            wanted = {name: n for name, n in lengths.items() if n != base[name]}
            self.tree.exclude(_before_items(_opened(guard, self.chosen, except_for=wanted), self.chosen))

    def _checked(self, base: dict[str, int]) -> Iterator[dict[str, int]]:
        """Lengths that may be special: each list by itself, and none or one in all lists."""
        numbers = dict.fromkeys((*CHECKED_AT, *_constants(self.k.model.function.__code__)))
        for name in self.chosen:
            yield from ({**base, name: n} for n in numbers if n != base[name])
        if len(self.chosen) > 1:
            yield from (dict.fromkeys(self.chosen, n) for n in (0, 1))

    def _is_possible(self, lengths: Mapping[str, int]) -> bool:
        """A node that is no leaf has children in some relation."""
        relations = {*self.k.slots, *self.k.lists}
        return any(lengths.values()) or Fact(IsLeaf(), False) not in self.kind.guard or relations != set(lengths)

    def _insert(self, guard: Guard, pattern: Kind) -> None:
        """Add the pattern as a kind in place of the kinds that are its instances."""
        for other in list(self.tree.order):
            if _opened(other.guard, self.chosen) == guard:
                lengths = {
                    test.name: answer
                    for test, answer in _facts(other.guard)
                    if isinstance(test, Length) and isinstance(answer, int) and test.name in self.chosen
                }
                if is_instance(other, pattern, lengths, tuple(self.k.lists)):
                    self.tree.remove(other)
        self.tree.insert(Traced(guard, pattern.lets, pattern.results))


def _facts(guard: Guard) -> Iterator[tuple[Test, Answer]]:
    return ((fact.test, fact.answer) for fact in guard)


def _opened(guard: Guard, chosen: tuple[str, ...], except_for: Mapping[str, int] | None = None) -> Guard:
    """The guard with the lengths of the chosen lists left open, and without questions about their items."""
    found = []
    for fact in guard:
        match fact.test:
            case Length(name, ()) if name in chosen and name not in (except_for or {}):
                found.append(replace(fact, answer=None))
            case test if except_for is not None or _item(test, chosen) is None:
                found.append(fact)
    return tuple(found)


def _before_items(guard: Guard, chosen: tuple[str, ...]) -> Guard:
    """The questions before the first one about an item of the chosen lists."""
    first = next((i for i, fact in enumerate(guard) if _item(fact.test, chosen) is not None), len(guard))
    return guard[:first]


def _item(test: Test, chosen: tuple[str, ...]) -> int | None:
    """The index of the child in a chosen list that the question is about."""
    match test.path:
        case (Item(name, index), *_) if name in chosen:
            return index
        case _:
            return None


def _constants(code: CodeType) -> Iterator[int]:
    """The whole numbers that the code mentions, each with the next one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant)
        elif type(constant) is int and 0 <= constant <= MOST_CONSTANT:
            yield from (constant, constant + 1)


def _said(lengths: Mapping[str, int]) -> str:
    return " and ".join(f"{n} children in '{name}'" for name, n in lengths.items())
