"""The decision tree over the kinds of a model.

Every trace records the questions it asked. Tracing is deterministic, so equal answers lead to the same next
question, and the recorded guards form a tree. Each attribute that is read asks whether it is None; most of
these questions decide nothing and are left out of the guards of the finished model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cortex.errors import ModelError
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.arity.sequences import Sequences
from cortex.frontend.facts import Answer, Oracle, Shapes
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import Collect, Fact, HasLength, IsLeaf, IsNone, Length, Let, Test


@dataclass(frozen=True, eq=False)
class Traced:
    """The trace of one kind: every question it asked, its graph and its results by the names of states.

    `Fact(Length(name), None)` in the guard of a kind of any arity says that there may be any number of children, as
    long as it has been `checked`.
    """

    guard: tuple[Fact, ...]
    lets: tuple[Let, ...]
    results: dict[str, str]
    checked: CheckedLengths | None = None
    found_from: Oracle | None = None
    """Who answered when a kind of any arity was found; it can be asked as if it had other numbers of children."""
    shapes: Shapes = field(default_factory=dict)
    """Of a kind of any arity: what its reductions of several values get where there is something to reduce."""
    sequences: Sequences | None = None
    """Of a kind of any arity: the steps over the items of its lists."""
    collects: tuple[Collect, ...] = ()
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a trace: results that have rows, each a let, as many as a request gives."""

    @property
    def every_result(self) -> tuple[str, ...]:
        """The lets of all results, rows after the others."""
        return (*self.results.values(), *(row for rows in self.rows.values() for row in rows))


class Untraced:
    """Nodes that the kind of any arity beside it does not fit, and that no kind has been traced for."""


UNTRACED = Untraced()


@dataclass
class Branch:
    """A question, and where each answer leads, by the facts that the answers are.

    `rest` is where every other answer to `Length` leads.
    """

    test: Test
    answers: dict[Fact, Tree] = field(default_factory=dict)
    rest: Tree | None = None

    def below(self, fact: Fact) -> Tree | None:
        """Where an answer leads."""
        return self.answers.get(fact, self.rest)


Tree: TypeAlias = "Branch | Traced | Untraced"


class DecisionTree:
    """Kinds by the facts of a node."""

    def __init__(self) -> None:
        self.root: Tree | None = None
        self.order: list[Traced] = []
        self.changes = 0
        """How often kinds have been added or removed."""
        self.narrowed = 0
        """How often a kind of any arity has lost a number of children, for whose other nodes there may be no kind."""
        self.per_arity: dict[tuple[Fact, ...], str] = {}
        """Why kinds of such guards (with lengths left open) are traced for each number of children."""
        self._settled: tuple[int, Tree | None] = (-1, None)

    def insert(self, kind: Traced) -> None:
        """Add a kind that no node found so far."""
        self.root = self._inserted(self.root, kind, kind.guard)
        self.order.append(kind)
        self.changes += 1

    def exclude(self, guard: tuple[Fact, ...]) -> None:
        """Keep the nodes of this guard from kinds of any arity, unless they have a kind already."""
        self.root = self._inserted(self.root, UNTRACED, guard)
        self.changes += 1

    def remove(self, kind: Traced) -> None:
        """Take a kind out again."""
        self.root = self._without(self.root, kind, kind.guard)
        self.order.remove(kind)
        self.changes += 1

    def _inserted(self, at: Tree | None, leaf: Traced | Untraced, guard: tuple[Fact, ...]) -> Tree:
        if not guard:
            if at is None or isinstance(at, Untraced):
                return leaf
            if isinstance(leaf, Untraced):
                return at
            raise _not_deterministic()
        fact, *others = guard
        if at is None or isinstance(at, Untraced):
            at = Branch(fact.test)
        if isinstance(at, Traced) or at.test != fact.test:
            raise _not_deterministic()
        if _is_open(fact):
            at.rest = self._inserted(at.rest, leaf, tuple(others))
        else:
            self.narrowed += at.rest is not None and fact not in at.answers
            at.answers[fact] = self._inserted(at.answers.get(fact), leaf, tuple(others))
        return at

    def _without(self, at: Tree | None, kind: Traced, guard: tuple[Fact, ...]) -> Tree | None:
        if not isinstance(at, Branch):
            return None if at is kind else at
        fact, *others = guard
        below = self._without(at.rest if _is_open(fact) else at.answers.get(fact), kind, tuple(others))
        if _is_open(fact):
            at.rest = below
        elif below is None:
            at.answers.pop(fact, None)
        else:
            at.answers[fact] = below
        return at if at.answers or at.rest is not None else None

    @property
    def settled(self) -> Tree | None:
        """The tree in which every question about a length separates kinds of that length from all others."""
        if self._settled[0] != self.changes:
            self._settled = (self.changes, None if self.root is None else settle(self.root))
        return self._settled[1]

    def find(self, answer: Callable[[Test], Answer], present: dict[Test, Answer] | None = None) -> Traced | None:
        """The kind whose guard agrees with the answers, or None when it has not been traced yet.

        With `present`, that an attribute is None does not count where no kind is for that, as it does not when a
        request is run; `present` gets these questions, and what they are taken to be answered with.
        """
        at = self.settled
        while isinstance(at, Branch):
            given = answer(at.test)
            below = at.below(Fact(at.test, given))
            if below is None and present is not None and isinstance(at.test, IsNone) and given:
                present[at.test] = False
                below = at.below(Fact(at.test, False))
            at = below
        return at if isinstance(at, Traced) else None

    def guards(
        self, knowledge: Knowledge, is_refuted: Callable[[tuple[Fact, ...]], bool]
    ) -> list[tuple[Traced, tuple[Fact, ...]]]:
        """Every kind with the facts that matter, in the order of tracing.

        A kind that several combinations of lengths are kept from is there several times: no one guard excludes them.

        A question with only one answer so far does not matter where the facts above it imply the answer, or where
        `is_refuted` says that no node can answer otherwise. It stays where the other answer has not been met yet:
        a node that gives it is a new kind.
        """
        found: dict[int, list[tuple[Fact, ...]]] = {}
        stack: list[tuple[Tree | None, tuple[Fact, ...], tuple[Fact, ...]]] = [(self.settled, (), ())]
        while stack:
            at, asked, kept = stack.pop()
            if isinstance(at, Traced):
                found.setdefault(id(at), []).append(kept)
            elif isinstance(at, Branch) and at.rest is not None:
                assert isinstance(at.test, Length)
                for fact, below in at.answers.items():
                    assert isinstance(fact.answer, int)
                    test = HasLength(at.test.name, fact.answer, at.test.path)
                    stack.append((below, (*asked, fact), (*kept, Fact(test, True))))
                    kept = (*kept, Fact(test, False))
                stack.append((at.rest, (*asked, Fact(at.test, None)), kept))
            elif isinstance(at, Branch):
                for fact, below in at.answers.items():
                    single = len(at.answers) == 1
                    other = (*asked, Fact(at.test, not fact.answer))
                    idle = single and (_is_implied(fact, asked, knowledge) or _is_idle(fact, other, is_refuted))
                    stack.append((below, (*asked, fact), kept if idle else (*kept, fact)))
        return [(kind, guard) for kind in self.order for guard in found[id(kind)]]


def settle(at: Tree) -> Tree:
    """A tree of the same meaning in which a kind of any arity stands beside kinds of single lengths only.

    before:  length? 0: leaf; 4: (op? y: fourth); any other: (op? x: any)
    after:   length? 0: leaf; any other: (op? x: any; y: (length? 4: fourth))

    The question that follows every length in common goes first, so that the answers of a kind that is traced for each
    length do not split one that is not.
    """
    if not isinstance(at, Branch):
        return at
    if at.rest is None:
        return Branch(at.test, {key: settle(below) for key, below in at.answers.items()})
    settled = _settle_length(at.test, at.answers, at.rest)
    assert settled is not None
    return settled


def _settle_length(test: Test, answers: Mapping[Fact, Tree], rest: Tree | None) -> Tree | None:
    common = rest.test if isinstance(rest, Branch) else None
    later = {key: s for key, s in answers.items() if isinstance(s, Branch) and s.test == common}
    if rest is None or not isinstance(rest, Branch) or not later:
        settled = {key: settle(below) for key, below in answers.items()}
        if rest is None and not settled:
            return None
        return Branch(test, settled, None if rest is None else settle(rest))

    def under(key: Fact) -> Tree | None:
        of_lengths = {length: below for length, s in later.items() if (below := s.below(key)) is not None}
        return _settle_length(test, of_lengths, rest.below(key))

    keys = dict.fromkeys((*rest.answers, *(key for s in later.values() for key in s.answers)))
    first = Branch(rest.test, {key: below for key in keys if (below := under(key)) is not None})
    open_ends = {length: s.rest for length, s in later.items() if s.rest is not None}
    if rest.rest is not None or open_ends:
        first.rest = _settle_length(test, open_ends, rest.rest)
    alone = {key: settle(s) for key, s in answers.items() if key not in later}
    return Branch(test, alone, first) if alone else first


def _is_open(fact: Fact) -> bool:
    """Does the fact say that there may be any number of children?"""
    return isinstance(fact.test, Length) and fact.answer is None


def _not_deterministic() -> ModelError:
    return ModelError(
        "the model asked different questions about equal nodes. A model has to be a function of the node alone: "
        "it must not depend on variables that change between calls."
    )


def _is_idle(fact: Fact, other: tuple[Fact, ...], is_refuted: Callable[[tuple[Fact, ...]], bool]) -> bool:
    """Does the model fail for every node where the attribute is None?"""
    return isinstance(fact.test, IsNone) and fact.answer is False and is_refuted(other)


def _is_implied(fact: Fact, above: tuple[Fact, ...], knowledge: Knowledge) -> bool:
    """Does being a leaf, or not, tell already whether a child is None?"""
    test = fact.test
    if not isinstance(test, IsNone):
        return False
    relations = {*knowledge.slots, *knowledge.lists}
    is_leaf = next((f.answer for f in above if f.test == IsLeaf(test.path)), None)
    if fact.answer is True:
        return is_leaf is True and test.name in relations
    return is_leaf is False and relations == {test.name}
