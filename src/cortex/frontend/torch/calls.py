"""The graph of calls that a request makes: one node per call of a routine on a node of the user's.

It is made only where the user's own nodes cannot be the nodes of the model: several routines call each other, or
callers compute arguments. Calls are found when the linearizer follows a relation to them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from cortex.frontend.torch.steps import NOWHERE, At, Steps, follow, identifier

PASSING = ">"
"""At the end of a tag: the call as far as it computes arguments of other calls."""

HEAD = "cortex_head"
"""The attribute that only the head of a request has."""
ARGUMENT = "cortex_argument_"


def argument(name: str) -> str:
    """The attribute that holds an argument."""
    return f"{ARGUMENT}{name}"


class Arguments:
    """The arguments of one call of the module, as attributes; what the head of a request is a node for."""

    def __init__(self, given: dict[str, Any]) -> None:
        vars(self)[HEAD] = True
        for name, value in given.items():
            vars(self)[argument(name)] = value


class CallNode:
    """A call of a routine on a node; `call_from` is the caller's, where callers compute arguments."""

    __slots__ = ("call_from", "call_role", "call_via", "given", "graph", "node")

    def __init__(self, graph: Graph, role: str, node: Any, given: dict[str, Any], caller: Any, via: str) -> None:
        self.graph = graph
        self.call_role = role
        self.node = node
        self.given = given
        self.call_from = caller
        self.call_via = via


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

    def __call__(self, call: Any) -> Any:
        """The node or nodes that a call depends on by this relation, if any."""
        return self.follow(call) if call.call_role in self.users else None

    def follow(self, call: CallNode) -> Any:
        """The node or nodes that the relation leads to."""
        try:
            found = follow(call.node, self.steps)
        except NOWHERE:
            return None
        if found is None:
            return None
        if not self.is_list:
            return self._one(call, found, identifier(self.steps))
        return [
            None if x is None else self._one(call, x, identifier((*self.steps, At(i)))) for i, x in enumerate(found)
        ]

    def _one(self, call: CallNode, node: Any, via: str) -> CallNode | None:
        if self.looks_up:
            return call.graph.made(self.role, node)
        given = {mine: call.given[theirs] for mine, theirs in self.inherits}
        role = call.call_role + PASSING if call.call_role in self.split else call.call_role
        caller = call.graph.passing(call, role) if self.is_top_down else None
        return call.graph.call(self.role, node, given, caller, via)


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


class Graph:
    """The calls of one request; each is one node however often it is made."""

    def __init__(self, head: Arguments, given: dict[str, Any], calls: Sequence[Relation]) -> None:
        self._calls: dict[tuple[Any, ...], CallNode] = {}
        self._last: dict[tuple[str, int], CallNode] = {}
        self._made = calls
        self._followed = False
        self.head = self.call("head", head, given, None, "")

    def call(self, role: str, node: Any, given: dict[str, Any], caller: CallNode | None, via: str) -> CallNode:
        """The node of a call."""
        key = (role, id(node), *map(id, given.values()), id(caller), via if caller else "")
        if key not in self._calls:
            self._calls[key] = CallNode(self, role, node, given, caller, via)
            self._last[role, id(node)] = self._calls[key]
        return self._calls[key]

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
        """Make all calls, from the head down."""
        todo = [self.head]
        visited: set[int] = set()
        while todo:
            call = todo.pop()
            if id(call) in visited:
                continue
            visited.add(id(call))
            for relation in self._made:
                found = relation.follow(call) if call.call_role in relation.callers else None
                todo += [x for x in (found if relation.is_list else [found]) if x is not None] if found else []
