"""The graph of calls that a request makes: one node per call of a routine on a node of the user's.

It is made only where the user's own nodes cannot be the nodes of the model: several routines call each other, or
callers compute arguments. Calls are found when the linearizer follows a relation to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cortex.errors import StructureError
from cortex.frontend.postorder import MAX_OBJECTS
from cortex.frontend.torch.steps import NOWHERE, At, Steps, follow, identifier, reader

PASSING = ">"
"""At the end of a tag: the call as far as it computes arguments of other calls."""

HEAD = "cortex_head"
"""The attribute that only the head of a request has."""
ARGUMENT = "cortex_argument_"
NOTHING: dict[str, Any] = {}
"""What calls are given that get no tensors of the request; never changed."""


def argument(name: str) -> str:
    """The attribute that holds an argument."""
    return f"{ARGUMENT}{name}"


def relation_attribute(name: str) -> str:
    """The attribute of a call that holds the calls which a relation leads to."""
    return f"to_{name}"


class Arguments:
    """The arguments of one call of the module, as attributes; what the head of a request is a node for."""

    def __init__(self, given: dict[str, Any]) -> None:
        vars(self)[HEAD] = True
        for name, value in given.items():
            vars(self)[argument(name)] = value


class CallNode:
    """A call of a routine on a node; `call_from` is the caller's, where callers compute arguments.

    In a subclass, the relations of the model are attributes, which only those calls have that use them.
    """

    _cortex_is_call = True

    __slots__ = ("call_from", "call_role", "call_via", "given", "graph", "is_followed", "node")

    def __init__(self, graph: Graph, role: str, node: Any, given: dict[str, Any], caller: Any, via: str) -> None:
        self.graph = graph
        self.call_role = role
        self.node = node
        self.given = given
        self.call_from = caller
        self.call_via = via
        self.is_followed = False


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
    _ways: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._read = reader(self.steps) if self.steps else None
        self._is_simple = not (self.looks_up or self.is_top_down or self.inherits)

    def __call__(self, call: Any) -> Any:
        """The node or nodes that a call depends on by this relation, if any."""
        return self.follow(call) if call.call_role in self.users else None

    def follow(self, call: CallNode) -> Any:
        """The node or nodes that the relation leads to."""
        try:
            found = call.node if self._read is None else self._read(call.node)
        except NOWHERE:
            return None
        if found is None:
            return None
        make = self._maker(call)
        if self.is_list:
            return [None if x is None else make(x, i) for i, x in enumerate(found)]
        return make(found, None)

    def _maker(self, call: CallNode) -> Callable[[Any, int | None], CallNode | None]:
        """What gives the call on a node that the relation leads to from `call`."""
        graph, role = call.graph, self.role
        if self._is_simple:
            known = graph.calls.get
            return lambda node, _: known((role, id(node))) or graph.call(role, node, NOTHING, None, "")
        if self.looks_up:
            return lambda node, _: graph.made(role, node)
        given = {mine: call.given[theirs] for mine, theirs in self.inherits} if self.inherits else NOTHING
        if not self.is_top_down:
            return lambda node, _: graph.call(role, node, given, None, "")
        caller = graph.passing(call, call.call_role + PASSING if call.call_role in self.split else call.call_role)
        return lambda node, item: graph.call(role, node, given, caller, self._way(item))

    def _way(self, item: int | None) -> str:
        """A name for the way to a call: what the caller passes may depend on it."""
        number = item or 0
        while len(self._ways) <= number:
            last = () if item is None else (At(len(self._ways)),)
            self._ways.append(identifier((*self.steps, *last)))
        return self._ways[number]


@dataclass(frozen=True)
class Storing:
    """Which of several roles, in which the same attribute is stored, a node was called in."""

    roles: tuple[str, ...]
    steps: Steps

    def __call__(self, call: CallNode) -> str:
        """The tag of the role."""
        return call.graph.who_made(list(self.roles), follow(call.node, self.steps))


@dataclass(frozen=True)
class Row:
    """The row of the request's tensor `name` that the integer at `steps` from the node says, or the one at `number`."""

    name: str
    steps: Steps = ()
    number: int | None = None

    def __call__(self, call: Any) -> Any:
        """The row, for a node of a call."""
        return call.given[self.name][follow(call.node, self.steps) if self.number is None else self.number]


Links: TypeAlias = dict[str, list[tuple[str, Relation]]]
"""By role of the caller: the attribute that holds the calls which the relation leads to, and the relation."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What calls lead to."""

    node: type[CallNode]
    made: Links
    """The calls that are made; the attribute is empty where no result depends on them."""
    used: Links
    """What results depend on."""
    looked_up: Links
    """What of it is not made by the call itself."""

    @classmethod
    def of(cls, relations: Mapping[str, Relation]) -> Plan:
        """From all relations by name."""
        made: Links = {}
        used: Links = {}
        looked_up: Links = {}
        for name, relation in relations.items():
            attribute = relation_attribute(name)
            for role in () if relation.looks_up else relation.callers:
                made.setdefault(role, []).append((attribute if role in relation.users else "", relation))
            for role in relation.users:
                used.setdefault(role, []).append((attribute, relation))
                if relation.looks_up:
                    looked_up.setdefault(role, []).append((attribute, relation))
        slots = tuple(map(relation_attribute, relations))
        return cls(type(CallNode.__name__, (CallNode,), {"__slots__": slots}), made, used, looked_up)


class Graph:
    """The calls of one request; each is one node however often it is made."""

    def __init__(self, head: Arguments, given: dict[str, Any], plan: Plan) -> None:
        self.calls: dict[tuple[Any, ...], CallNode] = {}
        self._order: list[CallNode] = []
        self._last: dict[tuple[str, int], CallNode] = {}
        self._plan = plan
        self._followed = False
        self.head = self.call("head", head, given, None, "")
        self._link()

    def call(self, role: str, node: Any, given: dict[str, Any], caller: CallNode | None, via: str) -> CallNode:
        """The node of a call."""
        key: tuple[Any, ...]
        if given:
            key = (role, id(node), *map(id, given.values()), id(caller), via)
        else:
            key = (role, id(node)) if caller is None else (role, id(node), id(caller), via)
        made = self.calls.get(key)
        if made is None:
            made = self.calls[key] = self._plan.node(self, role, node, given, caller, via)
            self._order.append(made)
            if len(self.calls) > MAX_OBJECTS:
                raise StructureError(
                    f"the module makes more than {MAX_OBJECTS} calls for one request; is there a cycle below the node?"
                )
        return made

    def released(self) -> CallNode:
        """The head; the graph forgets the calls, which know each other by now and are freed without the collector."""
        head = self.head
        del self.head
        self.calls.clear()
        self._order.clear()
        self._last.clear()
        return head

    def passing(self, call: CallNode, role: str) -> CallNode:
        """The node that computes the arguments of the calls that `call` makes."""
        if role == call.call_role:
            return call
        return self.call(role, call.node, call.given, call.call_from, call.call_via)

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
        todo = [self.head]
        while todo:
            call = todo.pop()
            if call.is_followed:
                continue
            call.is_followed = True
            self._last[call.call_role, id(call.node)] = call
            below: list[CallNode] = []
            for attribute, relation in self._plan.made.get(call.call_role, ()):
                found = relation.follow(call)
                if found is not None:
                    below += [x for x in found if x is not None] if relation.is_list else [found]
                    if attribute:
                        setattr(call, attribute, found)
            below.reverse()
            todo += below

    def _link(self) -> None:
        """Set the attributes of all calls; following relations makes more of them."""
        if self._plan.looked_up:
            self._followed = True
            self._follow()
        used, looked_up = self._plan.used, self._plan.looked_up
        for call in self._order:
            for attribute, relation in (looked_up if call.is_followed else used).get(call.call_role, ()):
                found = relation.follow(call)
                if found is not None:
                    setattr(call, attribute, found)
