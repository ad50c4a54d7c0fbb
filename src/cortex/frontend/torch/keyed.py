"""What a structure holds at a key that a node holds: `graph.children[v]`, `graph.predecessors(v)`.

Structures whose nodes are numbers or names are walked by functions of these: the number is the node of a call, and the
structure is handed on with it, as data of the call. Which parameter the node is follows from what differs between a
call and the one that made it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.frontend.builder import builder, is_tracing
from cortex.frontend.computed import Computed, Constant
from cortex.frontend.field_arithmetic import common
from cortex.frontend.spans import user_span
from cortex.frontend.torch.categories import PLAIN
from cortex.frontend.torch.identity import HASH, NodeId, is_equal
from cortex.frontend.torch.node_lists import is_nested
from cortex.frontend.torch.steps import At, Step, Steps

if TYPE_CHECKING:
    from cortex.frontend.torch.standins import NodeField
    from cortex.frontend.torch.tracing import TorchBuilder

REACHING = ("getitem", "called")
"""Functions of operands that lead to whatever a structure holds, rather than compute a number."""


def reached(b: TorchBuilder, fn: str, start: Steps, key: NodeField) -> Any:
    """What `fn` leads to from what `start` leads to: the item at a key, or what a method gives for it."""
    from cortex.frontend.torch.standins import present

    ways = [start, key._cortex_steps]
    home = common(ways)
    return present(b, (*home, Computed(fn, tuple(way[len(home) :] for way in ways), user_span())))


def computes(step: Step | None) -> bool:
    """Does a step lead to a number or a text that nothing else holds?"""
    return isinstance(step, Computed) and step.fn not in REACHING


def is_key(value: Any) -> bool:
    """Is it an integer or a text of a node, by which structures can hold others?"""
    from cortex.frontend.torch.standins import NodeField

    if not isinstance(value, NodeField):
        return False
    sample = value._cortex_sample()
    return isinstance(sample, int | str | np.integer) and not isinstance(sample, bool)


def is_node_of_call(value: Any) -> bool:
    """Is it a number or a name, and the node of the call that is traced, or of one that this has made?"""
    from cortex.frontend.torch.standins import NodeField, tracing

    if not is_tracing() or not isinstance(value, NodeField):
        return False
    b, steps = tracing(), value._cortex_steps
    return not steps or b.model.walks.is_list_of_keys(steps[:-1]) or any(cut.steps == steps for cut in b.cuts)


def node_at(b: TorchBuilder, steps: Steps, sample: Any) -> Any:
    """An item of a list, which the length of the list makes exist: an object, or a number or name that is a node."""
    from cortex.frontend.torch.standins import TorchNode, field_of

    if steps not in b.places:
        if b.model.walks.is_list_of_keys(steps[:-1], [sample]):
            name, path = b.where(steps)
            b.knowledge.read.setdefault(name)
            b.places[steps] = field_of(b, name, steps, path)
        else:
            b.places[steps] = TorchNode(steps, sample)
    return b.places[steps]


class Key:
    """A number or a name that may be the node of a call: it is looked up as such in what calls remember."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Python then compares it with all that is a node."""
        return HASH if is_node_of_call(self) else super().__hash__()

    def __eq__(self, other: Any) -> Any:
        """As numbers; between nodes of calls, whether they lead to equal ones."""
        from cortex.frontend.torch.standins import is_stand_in

        if is_node_of_call(other) and is_node_of_call(self):
            return self is other or is_equal(builder(), self, other)  # type: ignore[arg-type]
        is_other = isinstance(other, NodeId) or is_stand_in(other)
        return False if is_other else super().__eq__(other)


class Walks:
    """Which parameter of a recursive routine is the node, where it is not the first that is one."""

    def __init__(self) -> None:
        self._nodes: dict[Hashable, str] = {}
        self._containers: set[Steps] = set()
        """Lists from which items are taken by what nodes hold."""
        self._lists: set[Steps] = set()
        """Lists of numbers or names that calls are made on."""

    def node_of(self, routine: Hashable, nodes: list[str], arguments: dict[str, Any]) -> str | None:
        """The parameter that is the node of a call, if there is any; `nodes` are those that are objects."""
        known = self._nodes.get(routine)
        return known if known in arguments else next(iter(nodes), None)

    def learn(self, routine: Hashable, nodes: list[str], before: dict[str, Steps], now: dict[str, Steps]) -> str | None:
        """A routine is called while it runs: the parameter that leads somewhere else; None where none does."""
        moved = [n for n, steps in now.items() if before.get(n) != steps and not _counts(steps, before.get(n))]
        found = next((name for name in moved if name in nodes), next(iter(moved), None))
        if found is not None and found != next(iter(nodes), None):
            self._nodes[routine] = found
        return found

    def take_item(self, b: TorchBuilder, steps: Steps) -> None:
        """An item of a list is taken by what a node holds: no other item of it matters."""
        _learn(b, self._containers, steps)

    def call_on(self, b: TorchBuilder, steps: Steps) -> None:
        """A call is made on a number or a name: as on a node, where it is an item of a list."""
        last = steps[-1] if steps else None
        if isinstance(last, At) and type(last.key) is int and not is_nested(steps[:-1]):
            _learn(b, self._lists, steps[:-1])

    def is_container(self, steps: Steps) -> bool:
        """Are items of this list taken by what nodes hold?"""
        return steps in self._containers

    def is_list_of_keys(self, steps: Steps, items: Iterable[Any] = ()) -> bool:
        """Are calls made on the numbers or names of this list, and are these items some?"""
        return steps in self._lists and all(isinstance(x, PLAIN) for x in items)


def _counts(steps: Steps, before: Steps | None) -> bool:
    """Is it a number that is computed from the one before, as `depth + 1` is? No structure says where that ends."""
    last = steps[-1] if steps else None
    if not isinstance(last, Computed) or not computes(last):
        return False
    ways = [(*steps[:-1], *x) for x in last.operands if not isinstance(x, Constant)]
    return any(way == before or _counts(way, before) for way in ways)


def _learn(b: TorchBuilder, known: set[Steps], steps: Steps) -> None:
    if steps not in known:
        known.add(steps)
        b.model.restart()
