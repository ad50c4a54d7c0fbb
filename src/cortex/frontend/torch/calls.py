"""The graph of calls that a request makes: one node per call of a routine on a node of the user's.

It is made only where the user's own nodes cannot be the nodes of the model: several routines call each other, or
callers compute arguments. Calls are found when a relation to them is followed. Requests to a compiled module have their
graphs made by the native linearizer, from the same relations (native/calls.hpp); this is for tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from cortex.errors import ModelError, StructureError
from cortex.frontend.computed import Constant
from cortex.frontend.postorder import MAX_OBJECTS
from cortex.frontend.torch.passed_numbers import COUNT, ITEM, POSITION, Numbers
from cortex.frontend.torch.steps import NOWHERE, At, Attr, Steps, follow, identifier, text
from cortex.ra.ir import Each, Item, Slot

PASSING = ">"
"""At the end of a tag: the call as far as it computes arguments of other calls."""

HEAD = "cortex_head"
"""The attribute that only the head of a request has."""
ARGUMENT = "cortex_argument_"
CALLER = "call_from"
"""The slot that leads from a call to the one that computes its arguments."""
RESERVED = (CALLER, "call_role", "call_via")
"""Attributes of calls."""
MOST_NUMBERED = 64
"""More calls of a role on one node with different numbers, one below the other, are taken to have no end."""
NOTHING: dict[str, Any] = {}
"""What calls are given that get no tensors of the request, or no numbers; never changed."""


def argument(name: str) -> str:
    """The attribute that holds an argument."""
    return f"{ARGUMENT}{name}"


def said(steps: Steps) -> str:
    """What the steps lead to, as the user calls it: from a node, or from an argument of forward."""
    first = steps[0] if steps else None
    if isinstance(first, Attr) and first.name.startswith(ARGUMENT):
        return text(steps[1:], first.name.removeprefix(ARGUMENT))
    return text(steps)


class Arguments:
    """The arguments of one call of the module, as attributes; what the head of a request is a node for."""

    def __init__(self, given: dict[str, Any]) -> None:
        vars(self)[HEAD] = True
        for name, value in given.items():
            vars(self)[argument(name)] = value


class Calls(Arguments):
    """A request whose nodes are calls, for the linearizer, which makes them (native/calls.hpp)."""

    def __init__(self, given: dict[str, Any], tensors: dict[str, Any], relations: Mapping[str, Relation]) -> None:
        super().__init__(given)
        self.tensors = tensors
        self._relations = relations

    def graph(self, endless: Callable[[str], NoReturn] | None = None) -> Graph:
        """The same request for tracing; `endless` is told the role of calls that only a number may end."""
        return Graph(self, self.tensors, self._relations, endless)

    def call(self, way: Iterable[tuple[str, int]]) -> CallNode:
        """The call to which these relations lead, and positions in those that are lists."""
        call: Any = self.graph().head
        for name, item in way:
            found = call.call_from if name == CALLER else self._relations[name](call)
            call = found if item < 0 else found[item]
        made: CallNode = call
        return made


Added: TypeAlias = "Callable[[CallNode, str], tuple[Slot | Item | Each | None, ...] | None]"
"""What a call adds to a collection; None where its kind is not known yet."""


class CallNode:
    """A call of a routine on a node; `call_from` is the caller's, where callers compute arguments."""

    _cortex_is_call = True

    __slots__ = ("call_from", "call_role", "call_via", "given", "graph", "is_followed", "maker", "node", "numbers")

    def __init__(
        self, graph: Graph, role: str, node: Any, given: dict[str, Any], caller: Any, via: str, numbers: dict[str, Any]
    ) -> None:
        self.graph = graph
        self.call_role = role
        self.node = node
        self.given = given
        self.call_from = caller
        self.call_via = via
        self.numbers = numbers
        self.is_followed = False
        self.maker: CallNode | None = None
        """The first call that made it, where it is given numbers."""

    def is_below_itself(self) -> bool:
        """Was it made by a call of its role on its node, or by one that such a call made?"""
        at = self.maker
        while at is not None and (at.node is not self.node or at.call_role != self.call_role):
            at = at.maker
        return at is not None


@dataclass(eq=False)
class Relation:
    """Calls of `role` on what the steps lead to from the nodes of the calls in `callers`."""

    role: str
    steps: Steps
    is_list: bool
    is_top_down: bool
    inherits: tuple[tuple[str, str], ...]
    """Which tensors of the request a call gets: its parameter, and the caller's."""
    split: Set[str] = frozenset()
    """Roles whose computed arguments for other calls are nodes of their own."""
    callers: set[str] = field(default_factory=set)
    """Who makes such calls."""
    users: set[str] = field(default_factory=set)
    """Whose results depend on such calls."""
    looks_up: bool = False
    """Is it a call that was made by others, of which the node's attributes are read?"""
    numbers: Numbers = ()
    """The numbers and texts that calls are given."""
    meant: Callable[[Steps], Steps] = field(default=lambda steps: steps, repr=False)
    """Steps with the user's meaning of attributes."""
    collection: str = ""
    """Does it lead to all calls that add to this collection, from the one that the steps lead to on?"""
    start: str = ""
    """Then the relation that leads to that one."""
    added: Added | None = None
    waiting: set[str] = field(default_factory=set)
    """Who may depend on such calls: what they return was not known when it was traced."""

    def __call__(self, call: Any) -> Any:
        """The node or nodes that a call depends on by this relation, if any."""
        return self.follow(call) if call.call_role in self.users or call.call_role in self.waiting else None

    def follow(self, call: CallNode) -> Any:
        """The node or nodes that the relation leads to."""
        if self.collection:
            return call.graph.collected(call, self) or []
        try:
            found = follow(call.node, self.steps, call.numbers)
        except NOWHERE:
            return None
        if found is None:
            return None
        if not self.is_list:
            return self._maker(call, 0)(found, None)
        items = list(found)
        make = self._maker(call, len(items))
        return [None if x is None else make(x, i) for i, x in enumerate(items)]

    def _maker(self, call: CallNode, count: int) -> Callable[[Any, int | None], CallNode | None]:
        """What gives the call on a node that the relation leads to from `call`, one of so many in a list."""
        graph, role = call.graph, self.role
        if self.looks_up:
            return lambda node, _: graph.made(role, node)
        given = {mine: call.given[theirs] for mine, theirs in self.inherits} if self.inherits else NOTHING
        numbers = self._numbers(call, count)
        caller = None
        if self.is_top_down:
            caller = graph.passing(call, call.call_role + PASSING if call.call_role in self.split else call.call_role)

        def make(node: Any, item: int | None) -> CallNode:
            made = graph.call(role, node, given, caller, self.way(item) if caller else "", numbers(node, item))
            if self.numbers:
                graph.note_numbered(made, call)
            return made

        return make

    def _numbers(self, call: CallNode, count: int) -> Callable[[Any, int | None], dict[str, Any]]:
        """What gives the numbers and texts that the call on a node is given."""
        if not self.numbers:
            return lambda *_: NOTHING

        def numbers(node: Any, item: int | None) -> dict[str, Any]:
            known = {**call.numbers, ITEM: node, POSITION: item, COUNT: count}
            return {
                name: x.value if isinstance(x, Constant) else follow(call.node, self.meant(x), known)
                for name, x in self.numbers
            }

        return numbers

    def way(self, item: int | None) -> str:
        """A name for the way to a call: what the caller passes may depend on it."""
        return identifier(self.steps if item is None else (*self.steps, At(item)))


@dataclass(frozen=True)
class Storing:
    """Which of several roles, in which the same attribute is stored, a node was called in."""

    roles: tuple[str, ...]
    steps: Steps

    def __call__(self, call: CallNode) -> str:
        """The tag of the role."""
        return call.graph.who_made(list(self.roles), follow(call.node, self.steps, call.numbers))


@dataclass(frozen=True)
class Row:
    """The row of the request's tensor `name` that the integer at `steps` from the node says, or the one at `number`.

    Where it is taken as a whole, it is the tensor.
    """

    name: str
    steps: Steps = ()
    number: int | None = None
    is_whole: bool = False

    def __call__(self, call: Any) -> Any:
        """The row, for a node of a call."""
        if self.is_whole:
            return call.given[self.name]
        at = follow(call.node, self.steps, call.numbers) if self.number is None else self.number
        return call.given[self.name][at]


class Graph:
    """The calls of one request; each is one node however often it is made."""

    def __init__(
        self,
        head: Arguments,
        given: dict[str, Any],
        relations: Mapping[str, Relation],
        endless: Callable[[str], NoReturn] | None = None,
    ) -> None:
        self._calls: dict[tuple[Any, ...], CallNode] = {}
        self._last: dict[tuple[str, int], CallNode] = {}
        self._relations = relations
        self._followed = False
        self._numbered: dict[tuple[str, int], set[int]] = {}
        self._endless = endless or no_end
        self.head = self.call("head", head, given, None, "", NOTHING)

    def call(
        self,
        role: str,
        node: Any,
        given: dict[str, Any],
        caller: CallNode | None,
        via: str,
        numbers: dict[str, Any],
    ) -> CallNode:
        """The node of a call."""
        key = (role, id(node), *map(id, given.values()), id(caller), via, *map(_identity, numbers.values()))
        made = self._calls.get(key)
        if made is None:
            made = self._calls[key] = CallNode(self, role, node, given, caller, via, numbers)
            if len(self._calls) > MAX_OBJECTS:
                raise StructureError(
                    f"the module makes more than {MAX_OBJECTS} calls for one request; is there a cycle below the node?"
                )
        return made

    def note_numbered(self, made: CallNode, maker: CallNode) -> None:
        """A call is given numbers: ask whether there is an end to such calls.

        Relations are followed before it is known of which kind a call is, so beyond what a number ends. On nodes that
        lead back to themselves, only a number does.
        """
        if made.maker is not None:
            return
        made.maker = maker
        known = self._numbered.setdefault((made.call_role, id(made.node)), set())
        known.add(id(made))
        if len(known) > MOST_NUMBERED and made.is_below_itself():
            self._endless(made.call_role)

    def passing(self, call: CallNode, role: str) -> CallNode:
        """The node that computes the arguments of the calls that `call` makes."""
        if role == call.call_role:
            return call
        return self.call(role, call.node, call.given, call.call_from, call.call_via, call.numbers)

    def collected(self, call: CallNode, relation: Relation) -> list[CallNode] | None:
        """The calls that add to a collection, in order; None where it is not known of all what they add."""
        assert relation.added is not None
        found: list[CallNode] = []
        todo: list[tuple[CallNode | None, bool]] = [(self._relations[relation.start].follow(call), False)]
        while todo:
            at, is_entry = todo.pop()
            if at is None or is_entry:
                found += [at] if at is not None else []
                continue
            entries = relation.added(at, relation.collection)
            if entries is None:
                return None
            for entry in reversed(entries):
                if entry is None:
                    todo.append((at, True))
                    continue
                below = self._relations[entry.name].follow(at)
                if isinstance(entry, Each):
                    todo += [(x, False) for x in reversed(below or [])]
                elif below is not None:
                    todo.append((below[entry.index] if isinstance(entry, Item) else below, False))
            if len(found) > MAX_OBJECTS:
                raise StructureError(f"the calls of one request add more than {MAX_OBJECTS} entries to a collection")
        return found

    def made(self, role: str, node: Any) -> CallNode | None:
        """The call of a role on a node, which some other call made."""
        if not self._followed:
            self._followed = True
            self._follow()
        return self._last.get((role, id(node)))

    def who_made(self, roles: list[str], node: Any) -> str:
        """Which of these roles a node was called in; the last one of several."""
        return next((role for role in reversed(roles) if self.made(role, node) is not None), "")

    def _follow(self) -> None:
        """Make all calls in the order in which the module makes them, to know the last one on each node."""
        relations = [relation for relation in list(self._relations.values()) if not relation.looks_up]
        todo = [self.head]
        while todo:
            call = todo.pop()
            if call.is_followed:
                continue
            call.is_followed = True
            self._last[call.call_role, id(call.node)] = call
            below: list[CallNode] = []
            for relation in relations:
                found = relation.follow(call) if call.call_role in relation.callers else None
                if found is not None:
                    below += [x for x in found if x is not None] if relation.is_list else [found]
            below.reverse()
            todo += below


def no_end(role: str) -> NoReturn:
    """Refuse calls that only a number ends."""
    raise ModelError(
        f"{role} is called on the same node again and again, with other numbers each time. Only a number ends that, "
        "and calls are followed before their numbers are asked. Give it a structure without cycles."
    )


def _identity(x: Any) -> tuple[Any, ...]:
    """Equal for numbers and texts that are the same to all code."""
    return type(x), x.hex() if type(x) is float else x if type(x) in (int, str) else id(x)
