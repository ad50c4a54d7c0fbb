"""The decision tree over the kinds of a model.

Every trace records the questions it asked. Tracing is deterministic, so equal answers lead to the same next
question, and the recorded guards form a tree. Each attribute that is read asks whether it is None; most of
these questions decide nothing and are left out of the guards of the finished model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cortex.errors import ModelError
from cortex.frontend.facts import Answer
from cortex.frontend.knowledge import Knowledge
from cortex.ra.ir import Fact, IsLeaf, IsNone, Let, Test


@dataclass(frozen=True, eq=False)
class Traced:
    """The trace of one kind: every question it asked, its graph and its results by the names of states."""

    guard: tuple[Fact, ...]
    lets: tuple[Let, ...]
    results: dict[str, str]


@dataclass
class Branch:
    """A question, and where each answer leads. Answers of different types differ (1 is not True)."""

    test: Test
    answers: dict[tuple[type, Answer], Branch | Traced] = field(default_factory=dict)


class DecisionTree:
    """Kinds by the facts of a node."""

    def __init__(self) -> None:
        self.root: Branch | Traced | None = None
        self.order: list[Traced] = []

    def insert(self, kind: Traced) -> None:
        """Add a kind that no node found so far."""
        self.root = self._inserted(self.root, kind, 0)
        self.order.append(kind)

    def _inserted(self, at: Branch | Traced | None, kind: Traced, depth: int) -> Branch | Traced:
        if depth == len(kind.guard):
            if at is not None:
                raise _not_deterministic()
            return kind
        fact = kind.guard[depth]
        if at is None:
            at = Branch(fact.test)
        if isinstance(at, Traced) or at.test != fact.test:
            raise _not_deterministic()
        key = (type(fact.answer), fact.answer)
        at.answers[key] = self._inserted(at.answers.get(key), kind, depth + 1)
        return at

    def find(self, answer: Callable[[Test], Answer]) -> Traced | None:
        """The kind whose guard agrees with the answers, or None when it has not been traced yet."""
        at = self.root
        while isinstance(at, Branch):
            given = answer(at.test)
            at = at.answers.get((type(given), given))
        return at

    def guards(
        self, knowledge: Knowledge, is_refuted: Callable[[tuple[Fact, ...]], bool]
    ) -> list[tuple[Traced, tuple[Fact, ...]]]:
        """Every kind with the facts that matter, in the order of tracing.

        A question with only one answer so far does not matter where the facts above it imply the answer, or where
        `is_refuted` says that no node can answer otherwise. It stays where the other answer has not been met yet:
        a node that gives it is a new kind.
        """
        found: dict[int, tuple[Fact, ...]] = {}
        stack: list[tuple[Branch | Traced | None, tuple[Fact, ...], tuple[Fact, ...]]] = [(self.root, (), ())]
        while stack:
            at, asked, kept = stack.pop()
            if isinstance(at, Traced):
                found[id(at)] = kept
            elif at is not None:
                for (_, answer), below in at.answers.items():
                    fact = Fact(at.test, answer)
                    single = len(at.answers) == 1
                    other = (*asked, Fact(at.test, not answer))
                    idle = single and (_is_implied(fact, asked, knowledge) or _is_idle(fact, other, is_refuted))
                    stack.append((below, (*asked, fact), kept if idle else (*kept, fact)))
        return [(kind, found[id(kind)]) for kind in self.order]


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
