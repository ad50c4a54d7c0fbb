"""Taking all children at once: a guess at the kind of any number of children, which traces one by one have to confirm.

before:  cortex.sum(f(k) for k in node.children)            one iteration, with a stand-in for every child
after:   the sum over children of f(k), right for 2 and for 5 children as traces that take them one by one show

Tracing so costs one trace however many children there are. Whatever a model does that depends on how many there are, or
on which of them it has at hand (`len(hs)`, a counter, `next(it)`), makes the traces differ; then the children are taken
one by one. As for every kind of any arity, no number of children is served before it has been checked (see `check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from cortex.errors import ModelError
from cortex.frontend.arity.agree import Lengths
from cortex.frontend.arity.check import agrees, asks_the_same, rolled_if_large
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.arity.pattern import is_instance
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.arity.values import NotAlike
from cortex.frontend.arity.widen import asked_of_items, check_items, fits
from cortex.frontend.decision import DecisionTree, Traced
from cortex.frontend.facts import Answer, Exploring, Facts, Oracle, Seen
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates, OneByOne
from cortex.frontend.spans import span_of_error
from cortex.frontend.state_form import StateForm
from cortex.frontend.trace_kind import run, trace_kind
from cortex.ra.ir import Fact, IsLeaf, IsNone, Kind, Length, Test

T = TypeVar("T")

CONFIRMED_AT = (2, 5)
"""The guess is confirmed for so many children: a number that code may treat specially, and one that it rarely does."""

FAILS_AT = (2, 3)
"""What goes wrong in the same way for so many children has nothing to do with their number."""


def trace_node(k: Knowledge, facts: Facts) -> Traced:
    """The kind of a node: of any arity where it takes all children alike, else of the numbers that it asks for."""
    return _traced(k, facts, lambda own: trace_kind(k, own), lambda kind, own: _confirmed(k, kind, own))


def trace_form(k: Knowledge, facts: Facts) -> StateForm:
    """Only the form of the states that the kind of a node returns."""
    return _traced(k, facts, lambda own: run(k, own)[0], lambda form, _: form)


def insert(k: Knowledge, tree: DecisionTree, kind: Traced) -> None:
    """Add a kind to the tree; one of any arity takes the place of those of single numbers that it is right for."""
    if kind.checked is not None:
        for other in list(tree.order):
            if asks_the_same(k, kind, other) and fits(k, other, kind):
                tree.remove(other)
    else:
        kind = rolled_if_large(k, kind)
    tree.insert(kind)


def _traced(k: Knowledge, facts: Facts, trace: Callable[[Facts], T], confirmed: Callable[[T, Facts], T | None]) -> T:
    """What `trace` gives at once if that is confirmed, else one by one. `facts` has what was asked then."""
    if not k.model.explores:
        return trace(facts)
    own = Facts(facts.oracle, at_once=True)
    states = k.states, k.first_kind
    try:
        found = trace(own)
        result = confirmed(found, own) if own.iterated else found
        if result is not None:
            facts.known = own.known
            return result
    except (OneByOne, MissingAttribute):
        pass
    except (Impossible, NeedsStates, NeedsExample):
        if isinstance(facts.oracle, Exploring) or not own.iterated:
            facts.known = own.known
            raise
    except Exception as error:
        if not own.iterated or _fails_anyhow(k, own, trace, error):
            facts.known = own.known
            raise
    k.states, k.first_kind = states
    return trace(facts)


def _fails_anyhow(k: Knowledge, own: Facts, trace: Callable[[Facts], T], error: Exception) -> bool:
    """Would an assumed node fail like this whatever the number of its children? A real one shows what it does."""
    if not isinstance(own.oracle, Exploring):
        return False
    told = {_told(error)}
    steps = 0 if k.guess is None else k.guess.steps
    for count in FAILS_AT:
        try:
            trace(Facts(supposing(own.oracle, dict.fromkeys(own.iterated, count)), expected=own.shapes))
            return False
        except (Impossible, NeedsStates, NeedsExample):
            return False
        except Exception as problem:
            told.add(_told(problem))
        finally:
            if k.guess is not None:
                k.guess.steps = steps
    return len(told) == 1


def _told(error: Exception) -> tuple[str, object]:
    return str(error), error.span if isinstance(error, ModelError) else span_of_error(error)


def _confirmed(k: Knowledge, kind: Traced, own: Facts) -> Traced | None:
    """The kind, if tracing one by one gives the same for several numbers of children."""
    lists = tuple(name for name in own.iterated if own.known.get(Length(name), 0) is None)
    if not lists:
        return kind if _is_right_for_leaves(k, kind, own) else None
    found: Traced | None = None
    for lengths in [dict.fromkeys(lists, 0)] if own.known.get(IsLeaf()) else _confirming(own.oracle, lists):
        exact = _exact(k, own, lengths)
        if exact is None:
            return None
        if found is None:
            asked = _asked(k, own, lists, lengths, exact)
            if asked is None:
                return None
            checked = CheckedLengths(lists, asked, most=k.model.mentions().most)
            found = Traced(kind.guard, kind.lets, kind.results, checked, own.oracle, own.shapes)
        if not agrees(k, found, exact):
            return None
        assert found.checked is not None
        found.checked.add(lengths)
    assert found is not None
    return _without_node(k, found, own)


def _without_node(k: Knowledge, kind: Traced, own: Facts) -> Traced:
    """The kind that does not hold on to the user's node, if what it asked is all that has to be known of the node."""
    if not isinstance(own.oracle, Seen):
        return kind
    assert kind.checked is not None
    answers = {test: answer for test, answer in own.known.items() if answer is not None}
    asked = Facts(Exploring(answers, k), expected=own.shapes)
    exact = _exact(k, asked, dict.fromkeys(kind.checked.lists, 0 if own.known.get(IsLeaf()) else CONFIRMED_AT[0]))
    return replace(kind, found_from=asked.oracle) if exact is not None and agrees(k, kind, exact) else kind


def _confirming(oracle: Oracle, lists: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Numbers of children to confirm the guess for: different ones in different lists, then those of the node."""
    for i in range(len(CONFIRMED_AT)):
        yield {name: CONFIRMED_AT[(i + j) % len(CONFIRMED_AT)] for j, name in enumerate(lists)}
    if isinstance(oracle, Seen):
        yield {name: int(oracle.answer(Length(name)) or 0) for name in lists}


def _exact(k: Knowledge, own: Facts, lengths: Lengths) -> Traced | None:
    """The kind of such a node with these numbers of children, taken one by one; None where it cannot be traced."""
    try:
        return trace_kind(k, Facts(supposing(own.oracle, lengths, imagined=True), expected=own.shapes or own.expected))
    except (Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
        return None


def _asked(k: Knowledge, own: Facts, lists: tuple[str, ...], lengths: Lengths, exact: Traced) -> frozenset[str] | None:
    """The attributes of children that may be None without making a difference; None where children are told apart."""

    def attempt(lengths: Lengths, facts: Mapping[Test, Answer]) -> Traced | tuple[Fact, ...]:
        other = Facts(supposing(own.oracle, lengths, facts, imagined=True), expected=own.shapes)
        try:
            return trace_kind(k, other)
        except (Exception, Impossible, MissingAttribute):
            return other.guard()

    try:
        check_items(attempt, lists, lengths, exact)
    except NotAlike:
        return None
    return frozenset(test.name for test in asked_of_items(exact.guard, lists) if isinstance(test, IsNone))


def _is_right_for_leaves(k: Knowledge, kind: Traced, own: Facts) -> bool:
    """Is a kind of leaves, whose children were taken at once, what a leaf computes without any?"""
    exact = trace_kind(k, Facts(own.oracle, expected=own.shapes))
    pattern = Kind("pattern", (), kind.lets, tuple(kind.results.values()))
    same_form = exact.guard == kind.guard and list(exact.results) == list(kind.results)
    return same_form and is_instance(exact, pattern, None, dict.fromkeys(own.iterated, 0), tuple(k.lists))
