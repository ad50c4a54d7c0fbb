"""Items of a list that code tells apart: `if child.tag == "punct": continue`, `self.a(h) if child.op == "x" else h`.

before:  children[0].tag == "punct"? no; children[1].tag == "punct"? yes; ...           a kind for each combination
after:   how many children are kept(tag equals "punct": yes), and kept(tag equals "punct": no)?         two lists

Items of which the same is true are a *family*. Each family is a list of its own, which the linearizer makes for each
node (`Kept` in steps.py), and kinds of any arity are found for several lists as usual. What is asked about an item is
told by its list and is no fact of the node. That items belong to no known family is one.

Guards do not say in which order items of different families come. So traces for other numbers of items mix them in many
ways, and a kind of one combination of numbers is compared with others of another order (`check_order`). Where the order
makes a difference, the items of the list are asked one by one again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn

from cortex.frontend.arity.same_graph import same_graph
from cortex.frontend.arity.supposing import Supposed, supposing
from cortex.frontend.decision import Traced
from cortex.frontend.facts import ABSENT, Answer, Facts, Seen
from cortex.frontend.items_apart import ItemsApart
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates, Restart
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.frontend.torch.keyed import node_at
from cortex.frontend.torch.node_lists import NodeList, is_nested
from cortex.frontend.torch.standins import TorchNode
from cortex.frontend.torch.steps import NOWHERE, At, Given, Kept, Question, Steps, exact, follow
from cortex.frontend.trace_kind import trace_kind
from cortex.ra.ir import Compares, Equals, Fact, IsNone, Item, Kind, Length, Test, Value

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

MOST_FAMILIES = 6
"""A list with more is asked item by item."""
MOST_EXAMPLES = 4
ORDERS = (1, 2, 3)
"""Ways to mix families in which a kind is tried."""

Key = tuple[str, Steps]
"""The tag of a call and the way to a list."""


class Families(ItemsApart):
    """The lists whose items code tells apart, what it asks about them, and the families seen so far."""

    def __init__(self) -> None:
        self._questions: dict[Key, tuple[Question, ...]] = {}
        self._known: dict[Key, dict[tuple[Any, ...], tuple[Answer, ...]]] = {}
        self._presented: set[Key] = set()
        self._closed: set[Key] = set()

    def clear(self) -> None:
        """Start again with other nodes."""
        for learned in (self._questions, self._known, self._presented, self._closed):
            learned.clear()

    def names(self, k: Knowledge) -> dict[str, Key]:
        """The lists of families, by name."""
        accessors = _accessors(k)
        return {
            accessors.name((*key[1], Kept(questions, (family,)))): key
            for key, questions in self._questions.items()
            for family in self._known[key].values()
        }

    def stand_ins(self, b: TorchBuilder, steps: Steps, sample: Any) -> list[Any]:
        """What stands for the items of a list of nodes; asks how many there are, of each family if there are any."""
        key, (name, path) = (b.tag, steps), b.where(steps)
        if not path and not is_nested(steps):
            self._presented.add(key)
        if key not in self._questions:
            b.knowledge.tags.setdefault(name)
            b.model.counts.ask(b, steps)
            return [node_at(b, (*steps, At(i)), x) for i, x in enumerate(sample)]
        questions, known = self._questions[key], self._known[key]
        ways = {which: (*steps, Kept(questions, (family,))) for which, family in known.items()}
        objects, order = self._mixed(b, key, ways, sample)
        self._ask(b, ways, (*steps, Kept(questions, tuple(known.values()), is_rest=True)))
        b.facts.told_by = partial(_told, b)
        lists = {w: [node_at(b, (*way, At(i)), x) for i, x in enumerate(objects[w])] for w, way in ways.items()}
        for which, way in ways.items():
            b.places[way] = NodeList(way, lists[which])
        taken = {which: iter(found) for which, found in lists.items()}
        return [next(taken[which]) for which in order]

    def sample(self, b: TorchBuilder, steps: Steps) -> Any:
        """What the steps lead to from a supposed item of a family; ABSENT for anything else."""
        at = next((i for i, step in enumerate(steps) if isinstance(step, Kept)), len(steps))
        item = b.places.get(steps[: at + 2])
        if not isinstance(b.facts.oracle, Supposed) or not isinstance(item, TorchNode):
            return ABSENT
        try:
            return follow(item._cortex_sample, b.accessors.meant(steps[at + 2 :]))
        except NOWHERE:
            return ABSENT

    def _mixed(
        self, b: TorchBuilder, key: Key, ways: dict[tuple[Any, ...], Steps], sample: Any
    ) -> tuple[dict[tuple[Any, ...], list[Any]], list[tuple[Any, ...]]]:
        """The items of each family, and to which family each item in turn belongs."""
        names, oracle = {which: b.accessors.name(way) for which, way in ways.items()}, b.facts.oracle
        if isinstance(oracle, Supposed) and any(name in oracle.lengths for name in names.values()):
            objects = {which: list(oracle.sample(name, ())) for which, name in names.items()}
            order = [which for which, found in objects.items() for _ in found]
            Random(f"{[len(found) for found in objects.values()]} {oracle.order}").shuffle(order)
            return objects, order
        order = [self._family(b, key, item) for item in sample]
        objects = {which: [x for x, its in zip(sample, order, strict=True) if its == which] for which in ways}
        for which, name in names.items():
            if objects[which] and type(oracle) is Seen:
                b.knowledge.examples[name] = objects[which][:MOST_EXAMPLES]
        return objects, order

    def _ask(self, b: TorchBuilder, ways: dict[tuple[Any, ...], Steps], rest: Steps) -> None:
        """How many items has each family, and are there others?"""
        for way in (rest, *ways.values()):
            name = b.accessors.name(way)
            b.knowledge.tags.setdefault(name)
            b.knowledge.read.setdefault(name)
            if way is not rest:
                b.knowledge.item_lists.setdefault(name)
            b.facts.ask(Length(name))

    def _family(self, b: TorchBuilder, key: Key, item: Any) -> tuple[Any, ...]:
        """The family of a real item; a new one is learned."""
        answers = Kept(self._questions[key], ()).answers(item)
        which, known = exact(answers), self._known[key]
        if which in known:
            return which
        if len(known) >= MOST_FAMILIES or any(answer != answer for answer in answers):
            self._close(key)
        known[which] = answers
        b.knowledge.examples[b.accessors.name((*key[1], Kept(self._questions[key], (answers,))))] = [item]
        raise Restart

    def learn(self, k: Knowledge, guard: Iterable[Fact], lists: Iterable[str]) -> None:
        """A trace asks such questions; start again with families where they are about items of these lists."""
        facts, accessors = list(guard), _accessors(k)
        tag = next((fact.answer for fact in facts if fact.test == Value("call_role")), None)
        ways = {accessors.way_of_list(name) for name in lists}
        for key in [(own, way) for own, way in self._presented if way in ways and tag in (None, own)]:
            found = dict.fromkeys(self._questions.get(key, ()))
            asked = [_question(accessors, fact.test, key[1]) for fact in facts]
            more = [x for x in asked if isinstance(x, Question) and x not in found]
            if key in self._closed or UNKNOWN in asked or not more:
                continue
            if any(x.asks != "none" for x in (*more, *found)) or _differ(accessors, facts, key[1]):
                self._questions[key] = (*found, *dict.fromkeys(more))
                self._known[key] = {}
                raise Restart

    def close(self, k: Knowledge, names: Iterable[str]) -> None:
        """Ask item by item again about lists of which these are families, if there are any."""
        own = self.names(k)
        for name in names:
            if name in own:
                self._close(own[name])

    def check_order(self, k: Knowledge, kind: Traced, seen: Seen) -> None:
        """See that a kind of certain numbers of items of families does not depend on their order."""
        own = self.names(k)
        asked = {f.test.name: f.answer for f in kind.guard if isinstance(f.test, Length) and isinstance(f.answer, int)}
        lengths = {name: n for name, n in asked.items() if k.same_length.get(name, name) in own}
        there = [own[name] for name, n in lengths.items() if n and name in own]
        several = [key for key in dict.fromkeys(there) if there.count(key) > 1]
        if not several:
            return
        for order in ORDERS:
            try:
                other = trace_kind(k, Facts(supposing(seen, lengths, order=order)))
            except (Exception, Impossible, MissingAttribute, NeedsExample, NeedsStates):
                self._close(several[0])
            is_same = _states(other) == _states(kind) and same_graph(_body(other), _body(kind))
            if not is_same or set(other.guard) != set(kind.guard):
                self._close(several[0])

    def _close(self, key: Key) -> NoReturn:
        self._closed.add(key)
        del self._questions[key], self._known[key]
        raise Restart


def _accessors(k: Knowledge) -> TorchAccessors:
    assert isinstance(k.accessors, TorchAccessors)
    return k.accessors


def _states(kind: Traced) -> tuple[list[str], list[str]]:
    return list(kind.results), list(kind.rows)


def _body(kind: Traced) -> Kind:
    return Kind("", (), kind.lets, kind.every_result)


UNKNOWN = object()
"""What no question about one item is."""


def _item_of(accessors: TorchAccessors, test: Test, way: Steps) -> tuple[int, Steps] | None:
    """The place in a list of the item that a question is about, and the way from the item."""
    hop = test.path[0] if test.path else None
    name = getattr(test, "name", None)
    if name is None or not accessors.is_way(name):
        return None
    rest = accessors.steps(name)
    if isinstance(hop, Item):
        return (hop.index, rest) if len(test.path) == 1 and accessors.way_of_list(hop.name) == way else None
    at = rest[len(way)] if not test.path and len(rest) > len(way) and rest[: len(way)] == way else None
    return (at.key, rest[len(way) + 1 :]) if isinstance(at, At) and type(at.key) is int else None


def _question(accessors: TorchAccessors, test: Test, way: Steps) -> Any:
    """The question about an item of the list; None if it is about something else."""
    found = _item_of(accessors, test, way)
    if found is None:
        return None
    steps = found[1]
    if not steps or any(isinstance(step, Given) for step in steps):
        return UNKNOWN
    match test:
        case IsNone():
            return Question(steps, "none")
        case Value():
            return Question(steps, "value")
        case Length():
            return Question(steps, "length")
        case Equals(_, value):
            return Question(steps, "equals", value)
        case Compares(_, fn, bound):
            return Question(steps, fn, bound)
        case _:
            return UNKNOWN


def _differ(accessors: TorchAccessors, facts: list[Fact], way: Steps) -> bool:
    """Is something None for an item, and not for another one?"""
    found: dict[Steps, set[Answer]] = {}
    for fact in facts:
        item = _item_of(accessors, fact.test, way)
        if item is not None and isinstance(fact.test, IsNone):
            found.setdefault(item[1], set()).add(fact.answer)
    return any(len(answers) > 1 or True in answers for answers in found.values())


def _told(b: TorchBuilder, test: Test) -> tuple[Answer] | None:
    """The answer to a question about an item that its family tells."""
    accessors = b.accessors
    name = getattr(test, "name", None)
    if name is None or not accessors.is_way(name):
        return None
    hop, steps = test.path[0] if test.path else None, accessors.steps(name)
    if isinstance(hop, Item):
        way = accessors.way_of_list(hop.name)
        steps = () if way is None or len(test.path) > 1 else (*way, At(hop.index), *steps)
    at = next((i for i, step in enumerate(steps) if isinstance(step, Kept)), None)
    if at is None or not isinstance(kept := steps[at], Kept) or kept.is_rest:
        return None
    question = _question(accessors, test, steps[: at + 1])
    if not isinstance(question, Question) or question not in kept.questions:
        return None
    return (kept.families[0][kept.questions.index(question)],)
