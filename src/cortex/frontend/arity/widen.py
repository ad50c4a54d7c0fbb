"""From the kind of one number of children to a kind of any number.

A model that takes its children one by one asks how many there are, and its trace is for that number only. `widen` has
the model traced for other numbers as well, as if the node had so many children (see `supposing`). Where these traces
are instances of one pattern, the pattern is the kind of all of them, and of every other number of children for which
the same is found when a node first has it (see `check`). Numbers for which the trace is something else keep kinds of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import CodeType

from cortex.frontend.arity.agree import Lengths
from cortex.frontend.arity.collects import rolled_collects, written_out
from cortex.frontend.arity.lengths import CheckedLengths
from cortex.frontend.arity.list_items import itemized, itemized_guard
from cortex.frontend.arity.mentions import constants_of
from cortex.frontend.arity.pattern import find_pattern, is_instance
from cortex.frontend.arity.supposing import supposing
from cortex.frontend.arity.told import answers_alike, is_told, told_at
from cortex.frontend.arity.values import AsksItems, CountedOtherwise, NotAlike
from cortex.frontend.beyond import BetterByCalls
from cortex.frontend.decision import DecisionTree, Traced
from cortex.frontend.facts import Answer, Facts, Oracle
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.signals import Impossible, MissingAttribute, NeedsExample, NeedsStates
from cortex.frontend.trace_kind import trace_kind
from cortex.frontend.written import codes
from cortex.ra.ir import Fact, Field, IsAboveLeaves, IsLeaf, IsNone, Item, Kind, Length, State, Test

Guard = tuple[Fact, ...]
Attempt = Callable[[Lengths, Mapping[Test, Answer]], Traced | Guard]
"""Traces a node with so many children and such facts: its kind or, where the model fails, the questions it got to."""

FOUND_AT = (5, 8, 13)
"""The pattern is found in traces for so many children: more than code is likely to treat by themselves."""

FOUND_UP_TO = 256
"""Where such numbers are of another kind, by a remainder or the like, as many others up to this."""

MOST_ANSWERS = 24
"""So many combinations of answers to such questions are traced for nodes that there are none of yet."""

CHECKED_AT = (0, 1)
"""For so many the trace need not fit the pattern; where it does not, they keep kinds of their own. Other numbers are
checked when a node first has them."""

MOST_CONSTANT = 64
"""A number up to this that the code of the model mentions is checked too, and the next one: `if len(kids) > 10`."""

ORDERS = (1, 2, 3)
"""Ways to mix children that are told apart in which the pattern is tried."""

NO_CHILDREN = "the list is not one of children"
"""Why a list is not open: until a call on one of its items is seen, as leaves may come first."""


def widen(k: Knowledge, tree: DecisionTree, kind: Traced, oracle: Oracle) -> bool:
    """Add a kind of any arity to the tree, found from `kind`, which was traced with the answers of `oracle`.

    False if there is none, if `kind` is one itself, or if it cannot be told yet. The reason why there is none goes to
    `tree.per_arity`.
    """
    if kind.checked is not None:
        return False
    asked = [test.name for test, _ in _facts(kind.guard) if isinstance(test, Length) and not test.path]
    lists = [name for name in asked if k.is_of_children(name) or name in k.item_lists]
    for name in asked:
        if name not in lists:  # such as that of the parent's children
            tree.per_arity.setdefault(open_lengths(kind.guard, (name,)), NO_CHILDREN)
    apart = [name for name in lists if name in k.model.families.names(k)]
    for count in range(len(lists), 0, -1):
        for chosen in combinations(lists, count):
            if not set(apart) <= set(chosen):
                continue  # of items that are told apart, no number is special
            own = itemized(k, kind, chosen)
            key = open_lengths(own.guard, chosen)
            if tree.per_arity.get(key, NO_CHILDREN) != NO_CHILDREN:
                continue
            if any(other.checked is not None and other.guard == key for other in tree.order):
                continue  # there is one, which is not for this number of children
            try:
                widening = _Widening(k, tree, own, oracle, chosen)
                widening.run()
                widening.run_for_other_answers()
                return True
            except NotAlike as reason:
                k.model.families.learn(k, kind.guard, chosen)
                if count == 1:
                    _take_parts_for_lists(_Widening(k, tree, own, oracle, chosen))
                is_better = isinstance(reason, CountedOtherwise | AsksItems) or k.model.mentions().divides
                if is_better and k.prefers_calls:
                    raise BetterByCalls(reason.reason, reason.span) from None
                where = "" if reason.span is None else f" (line {reason.span.line})"
                tree.per_arity[key] = f"{reason.reason}{where}"
                if all(_lengths_told(kind.guard, tuple(apart)).values()):  # else it may be that there is nothing to do
                    k.model.families.close(k, apart)
            except (NeedsExample, NeedsStates):
                return False
    return False


def _take_parts_for_lists(failed: _Widening) -> None:
    """Take slices of a list for lists, and items at fixed places where code takes all items too, or numbers differ.

    A node with two children of which code takes the first and the second has no need of lists.
    """
    slices, (name,) = failed.k.model.slices, failed.chosen
    slices.make_lists()
    if not slices.items_are_taken or slices.items_are_lists:
        return
    lengths = failed._lengths(0)
    try:
        several = failed._attempt(lengths)
    except (NeedsExample, NeedsStates):
        return
    lets = several.lets if isinstance(several, Traced) else ()
    taken = {let.op.path[0] for let in lets if isinstance(let.op, State | Field) and let.op.path}
    if sum(isinstance(hop, Item) and hop.name == name for hop in taken) == lengths[name]:
        slices.make_lists_of_items()


def fits(k: Knowledge, kind: Traced, merged: Traced) -> bool:
    """Is a kind of the same questions an instance of a kind of any arity?"""
    assert merged.checked is not None
    kind = itemized(k, kind, merged.checked.open)
    pattern = Kind("pattern", (), merged.lets, tuple(merged.results.values()))
    known = _lengths_told(kind.guard, merged.checked.lists)
    if kind.collects != written_out(merged.collects, known):
        return False
    return list(kind.results) == list(merged.results) and is_instance(
        kind, pattern, merged.sequences, known, tuple(k.lists)
    )


def open_lengths(guard: Guard, lists: tuple[str, ...]) -> Guard:
    """The guard with the lengths of these lists left open, and without questions about their items."""
    return tuple(fact for fact in _with_lengths(guard, lists, {}) if _item(fact.test, lists) is None)


def asked_of_items(guard: Guard, lists: tuple[str, ...]) -> list[Test]:
    """The questions about items of the lists."""
    return [fact.test for fact in guard if _item(fact.test, lists) is not None]


def check_items(attempt: Attempt, lists: tuple[str, ...], lengths: Lengths, kind: Traced) -> None:
    """Refuse a model that does different things for different children.

    Whether an attribute of a child is None may be asked, if the model does not care, or fails where it is.
    """
    asked = [(test, answer) for test, answer in _facts(kind.guard) if _item(test, lists) is not None]
    for test, _ in asked:
        if _tells_apart(test):
            what = "being a leaf" if isinstance(test, IsLeaf | IsAboveLeaves) else f"'{test.name}'"
            raise AsksItems(f"what it does depends on {what} of a child")
    for test, is_none in asked:
        if _item(test, lists) not in (0, max(lengths.values()) - 1):
            continue  # the others are like these
        assert isinstance(test, IsNone)
        try:
            other = attempt(lengths, {test: not is_none})
        except (NeedsExample, NeedsStates):
            raise NotAlike(f"what it does where '{test.name}' of a child is None is not known") from None
        same = (
            isinstance(other, Traced)
            and (other.lets, other.results) == (kind.lets, kind.results)
            and all(
                _matters_not(attempt, lengths, {test: not is_none}, extra, kind)
                for extra in _facts(other.guard)
                if _item(extra[0], lists) is not None and extra[0] not in dict(asked)
            )
        )
        fails_for_none = not isinstance(other, Traced) and not is_none
        if not same and not fails_for_none:
            raise NotAlike(f"what it does depends on whether '{test.name}' of a child is None")


def _tells_apart(test: Test) -> bool:
    """Does the answer for one item say more than that it has an attribute?"""
    return not isinstance(test, IsNone) or len(test.path) > 1


def _matters_not(
    attempt: Attempt, lengths: Lengths, supposed: Mapping[Test, Answer], extra: tuple[Test, Answer], kind: Traced
) -> bool:
    """Does a question with the answers yes and no, asked in that case only, decide nothing but whether it fails?"""
    test, answer = extra
    if not isinstance(answer, bool):
        return False
    other = attempt(lengths, {**supposed, test: not answer})
    return not isinstance(other, Traced) or (other.lets, other.results) == (kind.lets, kind.results)


@dataclass(frozen=True)
class _Widening:
    """One attempt: for these lists at once."""

    k: Knowledge
    tree: DecisionTree
    kind: Traced
    oracle: Oracle
    chosen: tuple[str, ...]

    def run(self) -> None:
        traces: list[tuple[Lengths, Traced]] = []
        pattern, sequences = find_pattern(self._traces(traces), self.k.lists, self._taken())
        guard = open_lengths(self.kind.guard, self.chosen)
        asked = frozenset(
            t.name for t in asked_of_items(traces[0][1].guard, self.chosen) if not isinstance(t, IsLeaf | IsAboveLeaves)
        )
        relations = tuple(self._of_relations(dict.fromkeys(self.chosen, 0)))
        if not relations:
            raise NotAlike("no call is made on an item of the list")
        checked = CheckedLengths(relations, asked, self.chosen, self.k.model.mentions().most)
        for lengths, _ in traces:
            checked.add(lengths)
        results = dict(zip(self.kind.results, pattern.results, strict=True))
        collects = rolled_collects((self._of_relations(lengths), kind.collects) for lengths, kind in traces)
        shapes = traces[0][1].shapes
        merged = Traced(guard, pattern.lets, results, checked, self.oracle, shapes, sequences, collects)
        self._check_order(merged)
        self._exclude(merged, checked)
        for other in list(self.tree.order):
            if open_lengths(itemized_guard(self.k, other.guard, self.chosen), self.chosen) == guard and fits(
                self.k, other, merged
            ):
                self.tree.remove(other)
        self.tree.insert(merged)

    def _check_order(self, merged: Traced) -> None:
        """Items that are told apart may come in any order."""
        if any(name in self.k.model.families.names(self.k) for name in self.chosen):
            for order in ORDERS:
                other = self._attempt(self._lengths(0), order=order)
                if not isinstance(other, Traced) or not fits(self.k, other, merged):
                    raise NotAlike("what it does depends on the order of its children")

    def run_for_other_answers(self) -> None:
        """Add the kinds of any arity for other answers to questions that numbers of children decide.

        A request may have such a node when the model cannot be traced any more.
        """
        tried: set[tuple[tuple[Test, bool], ...]] = set()
        independent = self._independent()
        while is_told(self.k, self.kind.guard) and len(independent) == 1 and len(tried) < MOST_ANSWERS:
            numbers = ((n, told_at(self.k, independent[0], n)) for n in range(1, FOUND_UP_TO + 1))
            n, answers = next(((n, answers) for n, answers in numbers if answers not in tried), (None, ()))
            if n is None:
                return
            tried.add(answers)
            if answers_alike(self.k, self.kind.guard, self._linked_to(independent[0], n)):
                continue
            try:
                other = self._attempt(self._linked({independent[0]: n}))
            except (NeedsExample, NeedsStates):
                continue
            key = open_lengths(other.guard, self.chosen) if isinstance(other, Traced) else None
            if not isinstance(other, Traced) or any(each.guard in (key, other.guard) for each in self.tree.order):
                continue
            try:
                replace(self, kind=other).run()
            except NotAlike:
                self.tree.insert(other)  # for this number alone, or for few

    def _taken(self) -> set[str]:
        """Names that routines must not have."""
        others = (kind.sequences for kind in self.tree.order if kind.sequences is not None)
        return {*self.k.slots, *self.k.lists, *self.k.read, *(r.name for s in others for r in s.routines)}

    def _traces(self, made: list[tuple[Lengths, Traced]]) -> Iterator[tuple[Lengths, Traced]]:
        """Traces to find the pattern in, each made when those before it have been found to be alike."""
        for i in range(len(FOUND_AT)):
            lengths = self._lengths(i)
            kind = self._attempt(lengths)
            if not isinstance(kind, Traced):
                raise NotAlike(f"it cannot be traced for {_said(lengths)}")
            if not self._asks_the_same(kind.guard):
                asked = (test for each in (kind, self.kind) for test in asked_of_items(each.guard, self.chosen))
                reason = AsksItems if any(map(_tells_apart, asked)) else NotAlike
                raise reason("what it asks of a node depends on the number of its children")
            if (list(kind.results), list(kind.rows)) != (list(self.kind.results), list(self.kind.rows)):
                raise NotAlike("which states it has depends on the number of its children")
            if i == 0:
                check_items(self._attempt, self.chosen, lengths, kind)
            made.append((lengths, kind))
            yield self._of_relations(lengths), kind

    def _lengths(self, i: int) -> dict[str, int]:
        """Different lengths for different lists, unless they always have the same."""
        own = {name: self._found_at(name)[(i + j) % len(FOUND_AT)] for j, name in enumerate(self._independent())}
        return self._linked(own)

    def _found_at(self, name: str) -> tuple[int, ...]:
        """Numbers to find the pattern in: those for which the node would be asked the same."""
        if not is_told(self.k, self.kind.guard):
            return FOUND_AT
        tried = dict.fromkeys((*FOUND_AT, *range(FOUND_AT[0], FOUND_UP_TO + 1)))
        found = [n for n in tried if answers_alike(self.k, self.kind.guard, self._linked_to(name, n))]
        if len(found) < len(FOUND_AT):
            raise NotAlike("what it does depends on the number of its children")
        return tuple(found[: len(FOUND_AT)])

    def _linked_to(self, name: str, n: int) -> dict[str, int]:
        """The length of a list, and of those that are as long."""
        same = self.k.same_length
        return {other: n for other in self.chosen if name in (other, same.get(other))}

    def _independent(self) -> tuple[str, ...]:
        """The chosen lists whose lengths are not those of others among them."""
        return tuple(name for name in self.chosen if self.k.same_length.get(name) not in self.chosen)

    def _linked(self, lengths: Lengths) -> dict[str, int]:
        """Lengths of all chosen lists from those of the independent ones."""
        same = self.k.same_length
        return {name: lengths[name] if name in lengths else lengths[same[name]] for name in self.chosen}

    def _of_relations(self, lengths: Lengths) -> dict[str, int]:
        """Of lists that have the same length, that of the relation: only relations are there when the kind runs."""
        others = set(self.k.same_length.values()) - set(self.k.lists)
        return {name: n for name, n in lengths.items() if name not in others}

    def _attempt(self, lengths: Lengths, facts: Mapping[Test, Answer] | None = None, order: int = 0) -> Traced | Guard:
        """The kind of a node with so many children; or, where the model fails, the questions it got to."""
        asked = Facts(supposing(self.oracle, lengths, facts, order=order))
        try:
            return itemized(self.k, trace_kind(self.k, asked), self.chosen)
        except (Exception, Impossible, MissingAttribute):
            return itemized_guard(self.k, asked.guard(), self.chosen)

    def _asks_the_same(self, guard: Guard) -> bool:
        return open_lengths(guard, self.chosen) == open_lengths(self.kind.guard, self.chosen)

    def _exclude(self, merged: Traced, checked: CheckedLengths) -> None:
        """Check the lengths that are most likely special; keep those that are from the kind of any arity."""
        base = self._lengths(0)
        for lengths in filter(self._is_possible, self._checked(base)):
            if not answers_alike(self.k, self.kind.guard, lengths):
                continue  # nodes of another kind
            try:
                other = self._attempt(lengths)
            except (NeedsExample, NeedsStates):
                other = self.kind.guard
            if isinstance(other, Traced) and self._asks_the_same(other.guard) and fits(self.k, other, merged):
                checked.add(lengths)
                continue
            guard = other.guard if isinstance(other, Traced) else other
            special = {name: n for name, n in lengths.items() if n != base[name]}
            if self.k.prefers_calls and max(special.values(), default=0) > 1 and self.k.model.mentions().divides:
                raise NotAlike(f"it computes something else for {_said(special)}, maybe by a remainder")
            self.tree.exclude(_before_items(_with_lengths(guard, self.chosen, special), self.chosen))
        if fits(self.k, self.kind, merged):
            checked.add(_lengths_told(self.kind.guard, self.chosen))
        else:
            self.tree.exclude(_before_items(self.kind.guard, self.chosen))

    def _checked(self, base: dict[str, int]) -> Iterator[dict[str, int]]:
        """Lengths that may be special: each list by itself, and none or one in all lists."""
        numbers = dict.fromkeys((*CHECKED_AT, *_constants(self.k.model.function.__code__)))
        independent = self._independent()
        own = {name: base[name] for name in independent}
        for name in independent:
            yield from (self._linked({**own, name: n}) for n in numbers if n != base[name])
        if len(independent) > 1:
            yield from (dict.fromkeys(self.chosen, n) for n in (0, 1))

    def _is_possible(self, lengths: Lengths) -> bool:
        """A node that is no leaf has children in some relation."""
        relations = {*self.k.slots, *self.k.lists}
        return any(lengths.values()) or Fact(IsLeaf(), False) not in self.kind.guard or relations != set(lengths)


def _facts(guard: Guard) -> Iterator[tuple[Test, Answer]]:
    return ((fact.test, fact.answer) for fact in guard)


def _lengths_told(guard: Guard, lists: tuple[str, ...]) -> dict[str, int]:
    """The lengths of the node's own lists that the guard tells."""
    told = {t.name: n for t, n in _facts(guard) if isinstance(t, Length) and not t.path and isinstance(n, int)}
    return {name: n for name, n in told.items() if name in lists}


def _with_lengths(guard: Guard, lists: tuple[str, ...], lengths: Lengths) -> Guard:
    """The guard with these lengths of the lists; those of the others are left open."""
    own = {Length(name) for name in lists}
    return tuple(replace(f, answer=lengths.get(f.test.name)) if f.test in own else f for f in guard)


def _before_items(guard: Guard, lists: tuple[str, ...]) -> Guard:
    """The questions before the first one about an item of the lists."""
    first = next((i for i, fact in enumerate(guard) if _item(fact.test, lists) is not None), len(guard))
    return guard[:first]


def _item(test: Test, lists: tuple[str, ...]) -> int | None:
    """The index of the child in one of the lists that the question is about."""
    match test.path:
        case (Item(name, index), *_) if name in lists:
            return index
        case _:
            return None


def _constants(code: CodeType) -> Iterator[int]:
    """The whole numbers that the code mentions, each with the next one."""
    for constant in (x for inner in codes(code) for x in constants_of(inner)):
        if type(constant) is int and 0 <= constant <= MOST_CONSTANT:
            yield from (constant, constant + 1)


def _said(lengths: Lengths) -> str:
    return " and ".join(f"{n} children in '{name}'" for name, n in lengths.items())
