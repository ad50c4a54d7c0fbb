"""The relations of a traced module: how the node of a call leads to the nodes of the calls that it makes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from cortex.errors import ModelError
from cortex.frontend.facts import ABSENT, Seen, is_compatible
from cortex.frontend.signals import Restart
from cortex.frontend.spans import fail
from cortex.frontend.torch.calls import PASSING, Relation, said
from cortex.frontend.torch.collected import added_by
from cortex.frontend.torch.looks import Look
from cortex.frontend.torch.node_lists import NodeList, NodeTuple
from cortex.frontend.torch.passed_numbers import Group, Numbers, at_item, depends_on_item, for_all, of_item
from cortex.frontend.torch.roles import Role
from cortex.frontend.torch.steps import At, Attr, Steps, Way, identifier
from cortex.frontend.torch.tracing import Cut, TorchBuilder
from cortex.ra.ir import Fact, Gather, Hop, Item, Length, Let, Slot, State


@dataclass(frozen=True)
class Traced:
    """A trace: the node it was made for, and what was called on what, as roles and ways."""

    builder: TorchBuilder
    called: frozenset[tuple[str, Steps]]

    def has(self, way: Steps) -> bool:
        """Does the way lead to something, from that node?"""
        with suppress(Exception):  # of the user's attributes; who cannot read them has none
            found = self.builder.facts.oracle.sample(*self.builder.where(way))
            return found is not None and found is not ABSENT and not (isinstance(found, list | tuple) and not found)
        return False


MOST_RELATIONS = 256
MOST_EXAMPLES = 4
"""Items of a list that are kept for nodes that have none in it."""


class Links:
    """Relations, learned while calls are seen; those that results depend on are relations of the model."""

    def __init__(self) -> None:
        self.itemized: dict[str, int] = {}
        """Lists of which not every item is a node that is called; their items are slots.

        With how much was known of calls when that was seen: others may turn out to be called too.
        """
        self.relations: dict[str, Relation] = {}
        """All of them, by name."""
        self._split: set[str] = set()
        """Roles whose computed arguments for other calls are nodes of their own."""
        self._waits = 0
        """How often a result was waited for that was not known."""
        self._asked: set[str] = set()
        """Roles of which it matters on what nodes they are called."""
        self._sharing: set[str] = set()
        """Roles that store the same attribute as others, where it matters which."""
        self._partly_called: set[tuple[str, str]] = set()
        """Roles and lists of which some calls take only some items."""
        self._lists: dict[str, str] = {}
        """The lists that relations are made for, by name of the relation."""
        self._traces: dict[str, list[Traced]] = {}
        """What calls of each role were seen to call, for each kind that was traced."""
        self._decided_by: dict[str, list[tuple[Fact, ...]]] = {}
        """Relations to calls that decide something, whether or not results depend on them (see looks.py), and the
        guards of the kinds in which they do."""
        self._numbers: dict[tuple[str, str, Steps], set[Any]] = {}
        """What calls of each role, by the role of the caller and the way, were seen to be given."""
        self._numbers_by_kind: set[str] = set()
        """Roles that are given numbers which are computed in another way for other kinds of the caller."""
        self._by_kind: set[str] = set()
        """Roles that some call makes for some kinds of its node, and not for others that have such nodes too."""

    def clear(self) -> None:
        """Start again with other nodes."""
        self.itemized.clear()
        self.relations.clear()
        self._asked.clear()
        self._sharing.clear()
        self._partly_called.clear()
        self._lists.clear()
        self._traces.clear()
        self._numbers.clear()
        self._numbers_by_kind.clear()
        self._by_kind.clear()
        self._decided_by.clear()
        self._split.clear()

    def forgotten(self) -> None:
        """What results depend on has to be found again."""
        for relation in self.relations.values():
            relation.users.clear()
            relation.waiting.clear()
        self._traces.clear()
        self._numbers.clear()
        self._numbers_by_kind.clear()
        self._by_kind.clear()
        self._decided_by.clear()

    def decided_by(self, guard: tuple[Fact, ...]) -> set[str]:
        """The relations to calls that decide something in a kind with this guard."""
        return {
            name for name, guards in self._decided_by.items() if any(is_compatible(guard, other) for other in guards)
        }

    @property
    def uses(self) -> int:
        """In how many roles results depend on what relations lead to, or may, counted for each relation."""
        return self._waits + sum(len(relation.users) for relation in self.relations.values())

    def is_split(self, tag: str) -> bool:
        """Are the arguments that calls of this role compute for others nodes of their own?"""
        return tag in self._split

    def itemize(self, name: str) -> NoReturn:
        """Take the items of a list for slots of their own."""
        self.itemized[name] = self._known_callers
        for relation, base in self._lists.items():
            if base == name:
                self.relations[relation].callers.clear()
        raise Restart

    @property
    def _known_callers(self) -> int:
        return sum(len(relation.callers) for relation in self.relations.values())

    def made(self, b: TorchBuilder, cut: Cut) -> None:
        """A call is made."""
        self._relation(b, cut.role, cut.steps, looks_up=False, cut=cut)

    def hop(self, b: TorchBuilder, role: Role, steps: Steps, *, looks_up: bool = False) -> Hop:
        """The way to the node that stands for the call of `role` on what the steps lead to."""
        if b.model.mode == "calls":
            cut = next((c for c in reversed(b.cuts) if c.role is role and c.steps == steps), None)
            if looks_up:
                self.ask_who_called([role.tag])
            name, is_list = self._relation(b, role, steps, looks_up=looks_up, cut=cut)
            if role.result is None:
                self._wait(b, name)
        else:
            is_list = self._is_item(b, steps)
            way = steps[:-1] if is_list else steps
            name = b.accessors.name(way)
            if len(way) > 1 or not isinstance(way[0], Attr):
                b.accessors.relate(name, Way(way, careful=True))
            self._note(b, name, is_list)
        last = steps[-1] if steps else None
        return Item(name, last.key) if is_list and isinstance(last, At) and isinstance(last.key, int) else Slot(name)

    def gathered(self, b: TorchBuilder, role: Role, steps: Steps, collection: str) -> str:
        """The name of the list of all calls that add to a collection, from the call of `role` on."""
        start = self.hop(b, role, steps)
        if not isinstance(start, Slot):
            raise fail(
                f"'{collection}' is used after calls of {role.tag} on the items of a list have added to it. Let one "
                "call go through the items: a method that is called on the node that has the list."
            )
        name = f"{start.name}_{collection}"
        if name not in self.relations:
            added = added_by(b.knowledge)
            self.relations[name] = Relation(
                role.tag, steps, True, False, (), self._split, collection=collection, start=start.name, added=added
            )
        b.accessors.relate(name, self.relations[name])
        b.knowledge.gathers[name] = Gather(name, start.name, collection)
        if not b.tag.endswith(PASSING):
            self._use(b, name)
        return name

    def follow_for_collection(self, b: TorchBuilder, hop: Hop) -> None:
        """A call adds to a collection what another one adds, so that it depends on it."""
        self._use(b, hop.name)
        if isinstance(hop, Item):
            b.knowledge.same_length[hop.name] = b.accessors.name(self.relations[hop.name].steps)
            b.facts.ask(Length(hop.name))

    def _use(self, b: TorchBuilder, name: str) -> None:
        """The results of these calls depend on those that a relation leads to."""
        relation = self.relations[name]
        relation.users.add(b.tag)
        self._note(b, name, relation.is_list)
        if relation.start:
            self._use(b, relation.start)

    def _wait(self, b: TorchBuilder, name: str) -> None:
        """The results of these calls may depend on those that a relation leads to, once they are known."""
        waiting = self.relations[name].waiting
        self._waits += b.tag not in waiting
        waiting.add(b.tag)
        self._note(b, name, self.relations[name].is_list)

    def _end_waiting(self, b: TorchBuilder) -> None:
        """What calls of this role return is known: only what depends on them leads to them from now on."""
        for name, relation in self.relations.items():
            if relation.role == b.role.tag and relation.waiting:
                relation.waiting.clear()
                if not relation.users:
                    b.knowledge.slots.pop(name, None)
                    b.knowledge.lists.pop(name, None)

    def _note(self, b: TorchBuilder, name: str, is_list: bool) -> None:
        b.knowledge.note_list(name) if is_list else b.knowledge.note_slot(name)

    def _is_item(self, b: TorchBuilder, steps: Steps) -> bool:
        """Is it an item of a list all of whose items are nodes?"""
        if not steps or not isinstance(steps[-1], At) or not isinstance(steps[-1].key, int):
            return False
        around = b.places.get(steps[:-1])
        return isinstance(around, NodeList | NodeTuple) and b.accessors.name(steps[:-1]) not in self.itemized

    def _relation(
        self, b: TorchBuilder, role: Role, steps: Steps, *, looks_up: bool, cut: Cut | None
    ) -> tuple[str, bool]:
        """The name of the relation from calls like this one to those, and whether it is a list."""
        is_list = self._is_item(b, steps)
        way = steps[:-1] if is_list else steps
        inherits, numbers = ((), ()) if cut is None else (cut.inherits, () if looks_up else cut.numbers)
        if is_list and numbers:
            return self._group(b, role, steps, inherits, numbers), True
        name = self._named(b, role.tag, way, looks_up, inherits, numbers, (is_list, role.is_top_down))
        self.relations[name].callers.add(b.tag)
        return name, is_list

    def _named(
        self,
        b: TorchBuilder,
        tag: str,
        way: Steps,
        looks_up: bool,
        inherits: tuple[tuple[str, str], ...],
        numbers: Numbers,
        form: tuple[bool, bool],
    ) -> str:
        """The name of a relation, always the same one; `form` says whether it is a list, and goes down."""
        stem = "_".join([identifier(way), *(["of"] if looks_up else []), tag])
        name, number = stem, 2
        wanted = (way, inherits, numbers)
        while (known := self.relations.get(name)) is not None and (
            known.steps,
            known.inherits,
            known.numbers,
        ) != wanted:
            name, number = f"{stem}_{number}", number + 1
        if name not in self.relations:
            self.relations[name] = Relation(tag, way, *form, inherits, self._split, looks_up=looks_up, numbers=numbers)
            if form[0]:
                self._lists[name] = b.accessors.name(way)
            if number > MOST_RELATIONS:
                raise too_many_relations(b, tag, way)
        b.accessors.relate(name, self.relations[name])
        return name

    # Calls on items of lists that are given numbers.

    def _group(
        self, b: TorchBuilder, role: Role, steps: Steps, inherits: tuple[tuple[str, str], ...], given: Numbers
    ) -> str:
        """The relation to calls on items of a list that are given numbers, as far as it is known by then."""
        way, last = steps[:-1], steps[-1]
        assert isinstance(last, At)
        assert isinstance(last.key, int)
        at, count = last.key, len(b.places[way])
        numbers = of_item(given, way, at)
        for group in b.groups:
            if (group.role, group.way, group.inherits) == (role.tag, way, inherits) and group.takes(at, numbers):
                return group.name
        name = self._fitting(role.tag, way, inherits, {at: numbers}, count)
        if name is None:
            name = self._named(b, role.tag, way, False, inherits, numbers, (True, role.is_top_down))
        b.groups.append(Group(role.tag, way, inherits, name, {at: numbers}))
        b.accessors.relate(name, self.relations[name])
        return name

    def _fitting(
        self, tag: str, way: Steps, inherits: tuple[tuple[str, str], ...], numbers: dict[int, Numbers], count: int
    ) -> str | None:
        """A known relation that gives items these numbers; first of all one for any number of items."""
        found = [
            name
            for name, r in self.relations.items()
            if (r.role, r.steps, r.inherits, r.looks_up) == (tag, way, inherits, False)
            and all(_at_item(r.numbers, at, count) == each for at, each in numbers.items())
        ]
        return min(found, key=lambda name: not depends_on_item(self.relations[name].numbers), default=None)

    def _settle_groups(self, b: TorchBuilder) -> None:
        """Find the relations for the calls of groups, of which all are known now."""
        for group in b.groups:
            count = len(b.places[group.way])
            relation = self.relations[group.name]
            name = self._fitting(group.role, group.way, group.inherits, group.numbers, count)
            if name is None:
                numbers = for_all(group.numbers, count)
                if numbers is None:
                    self.itemize(b.accessors.name(group.way))
                self._named(b, group.role, group.way, False, group.inherits, numbers, (True, relation.is_top_down))
                raise Restart
            if name != group.name:
                b.accessors.relate(name, self.relations[name])
                rename_relation(b, group.name, name)
                group.name = name
            self.relations[name].callers.add(b.tag)

    def settle(self, b: TorchBuilder, results: tuple[str, ...]) -> None:
        """Note the relations that results depend on."""
        self._settle_groups(b)
        reads = [(let, let.op.path[0]) for let in b.reachable(results) if isinstance(let.op, State)]
        self._refuse_chains(b, reads)
        used = dict.fromkeys(hop for _, hop in reads)
        items: dict[str, set[int]] = {}
        for hop in used:
            if hop.name in self.relations:
                self._use(b, hop.name)
            if isinstance(hop, Item):
                items.setdefault(hop.name, set()).add(hop.index)
        self._split_where_needed(b)
        if stale := [name for name, known in self.itemized.items() if known < self._known_callers]:
            for name in stale:
                del self.itemized[name]
            raise Restart
        self._note_partly_called(b)
        self._note_called_by_kind(b)
        for name, indices in items.items():
            relation = self.relations.get(name)
            if relation is not None and relation.collection:
                continue
            base = name if relation is None else b.accessors.name(relation.steps)
            steps = b.accessors.steps(base) if relation is None else relation.steps
            if len(indices) != len(b.places[steps]):
                b.model.slices.make_lists_of_items()
                b.model.families.close(b.knowledge, [base])
                b.model.families.learn(b.knowledge, b.facts.guard(), [base])
                self.itemize(base)
            if relation is not None and type(b.facts.oracle) is Seen:
                b.knowledge.examples[name] = b.accessors.items(b.facts.oracle.node, name)[:MOST_EXAMPLES]
            if relation is not None:
                b.knowledge.same_length[name] = base
            b.facts.ask(Length(name))
        if b.role.result is not None:
            self._end_waiting(b)

    def look_at(self, b: TorchBuilder, looks: list[Look]) -> None:
        """These calls decide what the code does, so that it depends on them as if it computed with their results."""
        for look in looks:
            hop = self.hop(b, look.role, look.steps, looks_up=look.looks_up)
            self._decided_by.setdefault(hop.name, []).append(b.facts.guard())
            if hop.name in self.relations:
                self._use(b, hop.name)
        if looks:
            self._split_where_needed(b)

    def ask_who_stored(self, roles: Iterable[str]) -> None:
        """The model depends on which of these roles stored an attribute: on what nodes each is called."""
        self._sharing |= set(roles)
        self.ask_who_called(roles)

    def ask_who_called(self, roles: Iterable[str]) -> None:
        """The model depends on which calls of these roles are made: lists whose items are not all called are slots."""
        self._asked |= set(roles)
        if unclear := sorted(self._sharing & self._by_kind):
            raise fail(
                f"several methods store an attribute that is read later, and whether {unclear[0]} is called on a node "
                "depends on the node that the call comes from. Store under different names in different methods, or "
                "call one method and decide in it, by an argument or by a field of the node it is called on."
            )
        if unclear := sorted(self._asked & self._numbers_by_kind):
            raise fail(
                f"what {unclear[0]} stores is read where it is not called, and with which numbers it is called depends "
                "on the kind of the node that the call comes from. Compute them in one way: "
                "depth + int(node.is_scope); or store them on the nodes."
            )
        for role, base in self._partly_called:
            if role in self._asked and base not in self.itemized:
                self.itemize(base)

    def _note_partly_called(self, b: TorchBuilder) -> None:
        """Note the lists of which only some items are called."""
        called: dict[tuple[str, Steps], set[Steps]] = {}
        for cut in b.cuts:
            if self._is_item(b, cut.steps):
                called.setdefault((cut.role.tag, cut.steps[:-1]), set()).add(cut.steps)
        for (role, way), items in called.items():
            if len(items) != len(b.places[way]):
                self._partly_called.add((role, b.accessors.name(way)))
        self.ask_who_called(())

    def _note_called_by_kind(self, b: TorchBuilder) -> None:
        """Note the roles that this kind calls on nodes which other kinds have too and do not call, or the reverse."""
        called = frozenset(
            (cut.role.tag, cut.steps[:-1] if self._is_item(b, cut.steps) else cut.steps) for cut in b.cuts
        )
        self._note_numbers_by_kind(b)
        here = Traced(b, called)
        for other in self._traces.setdefault(b.tag, []):
            for one, two in ((here, other), (other, here)):
                self._by_kind |= {role for role, way in one.called - two.called if two.has(way)}
        self._traces[b.tag].append(here)
        self.ask_who_called(())

    def _note_numbers_by_kind(self, b: TorchBuilder) -> None:
        """Note the roles that this kind calls with other numbers than other kinds do, on the same nodes."""
        given: dict[tuple[str, str, Steps], set[Any]] = {}
        for cut in b.cuts:
            if cut.numbers and not self._is_item(b, cut.steps):
                given.setdefault((b.tag, cut.role.tag, cut.steps), set()).add(cut.numbers)
        for group in b.groups:
            given.setdefault((b.tag, group.role, group.way), set()).add(group.name)
        for key, numbers in given.items():
            if self._numbers.setdefault(key, numbers) != numbers:
                self._numbers_by_kind.add(key[1])

    def _refuse_chains(self, b: TorchBuilder, reads: list[tuple[Let, Hop]]) -> None:
        """Refuse arguments that depend on results of calls whose arguments are computed by the same node."""
        for let, hop in reads:
            relation = self.relations.get(hop.name)
            if relation is None or not b.tag.endswith(PASSING) or b.tag not in relation.callers:
                continue
            if relation.is_top_down and not relation.looks_up:
                raise ModelError(
                    f"what a call of {relation.role} returns here is passed on to another call, and calls of "
                    f"{relation.role} are given computed values themselves: each would have to wait for the one before "
                    "it, which is not supported. Pass to each child what does not depend on the results of others, and "
                    "combine those afterwards.",
                    let.span,
                )

    def _split_where_needed(self, b: TorchBuilder) -> None:
        """Calls that pass values to others whose results they depend on become two: one passes, one returns."""
        tags = dict.fromkeys([b.tag.removesuffix(PASSING), *(r.tag for r in b.model.roles)])
        new = {tag for tag in tags if tag not in self._split and self._waits_for_itself(tag)}
        if new:
            self._split |= new
            raise Restart

    def _waits_for_itself(self, tag: str) -> bool:
        """Does a role pass values to calls whose results it depends on?"""
        passes = [r for r in self.relations.values() if r.is_top_down and tag in r.callers]
        if not passes:
            return False
        reached, todo = set[str](), [tag]
        while todo:
            at = todo.pop()
            found = {r.role for r in self.relations.values() if at in r.users} - reached
            reached |= found
            todo += found
        return any(r.role in reached for r in passes)


def _at_item(numbers: Numbers, at: int, count: int) -> Numbers:
    return tuple((name, at_item(x, at, count)) for name, x in numbers)


def rename_relation(b: TorchBuilder, old: str, new: str) -> None:
    """Let what a trace reads by one relation be read by another one to the same items."""

    def renamed(hop: Hop) -> Hop:
        return replace(hop, name=new) if hop.name == old else hop

    def path(x: Any) -> Any:
        return replace(x, path=tuple(map(renamed, x.path))) if getattr(x, "path", ()) else x

    b.lets = [replace(let, op=path(let.op)) for let in b.lets]
    known = {path(test): answer for test, answer in b.facts.known.items()}
    lengths = {test: replace(test, name=new) for test in known if isinstance(test, Length) and test.name == old}
    b.facts.known = {lengths.get(test, test): answer for test, answer in known.items()}
    b.knowledge.note_list(new)
    if old in b.knowledge.same_length:
        b.knowledge.same_length[new] = b.knowledge.same_length[old]


def too_many_relations(b: TorchBuilder, tag: str, way: Steps) -> ModelError:
    """Calls are given numbers that are computed in more and more ways."""
    return fail(
        f"{tag} is called on {said(way)} with numbers that are computed in more than {MOST_RELATIONS} different ways. "
        "Compute them from the caller's in one way (depth + 1), or make them fields of the nodes."
    )


def no_base_case(model: str) -> ModelError:
    """Every kind needs another one's result first."""
    return ModelError(
        f"the results of '{model}' depend on each other: every call needs the result of another one first. A node "
        "without children must be handled without a recursive call, and what a call is given may not depend on its own "
        "result.",
    )
