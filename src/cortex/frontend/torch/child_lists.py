"""What a call reads of the children that it calls others on: fields of these, not of the node itself.

before:  a: i64 = node.children_0_rel; b: i64 = node.children_1_rel         (a trace for 2 children)
after:   a: i64 = node.children[0].rel; b: i64 = node.children[1].rel

So traces for different numbers of children are instances of one pattern, and a field has one name wherever it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.frontend.facts import Path, Seen
from cortex.frontend.signals import Restart
from cortex.frontend.spans import fail
from cortex.frontend.torch.steps import TRUTH, At, Steps
from cortex.ra.ir import Hop, Item, Length, State

if TYPE_CHECKING:
    from cortex.frontend.torch.tracing import TorchBuilder

MOST_ITEMS = 256
"""So many items of a list of numbers can be fields of their own."""


class ChildLists:
    """The lists whose items are nodes of the model, learned from what results depend on."""

    def __init__(self) -> None:
        self._relations: dict[tuple[str, Steps], str] = {}
        """By the tag of calls and the way to the list: the relation to the calls on its items."""
        self._read: set[tuple[str, Steps]] = set()
        """Lists of whose items something was read while that was not known."""

    def clear(self) -> None:
        """Start again with other nodes."""
        self._relations.clear()
        self._read.clear()

    def where(self, b: TorchBuilder, steps: Steps) -> tuple[str, tuple[Hop, ...]]:
        """The name of what the steps lead to, and the way to the node that has it: a child, or the node itself."""
        at = next((i for i, s in enumerate(steps[:-1]) if isinstance(s, At) and type(s.key) is int), None)
        if at is not None:
            key, item = (b.tag, steps[:at]), steps[at]
            relation = self._relations.get(key)
            if relation is None or b.accessors.name(steps[:at]) in b.model.links.itemized:
                self._read.add(key)
            else:
                assert isinstance(item, At)
                assert isinstance(item.key, int)
                if relation in b.model.links.relations:
                    b.model.links.relations[relation].users.add(b.tag)
                b.knowledge.note_list(relation)
                b.facts.ask(Length(relation))
                return b.accessors.name(steps[at + 1 :]), (Item(relation, item.key),)
        return b.accessors.name(steps), ()

    def learn(self, b: TorchBuilder, results: tuple[str, ...]) -> None:
        """Note the lists on whose items results depend; trace again where something was read of these before."""
        hops = [let.op.path[0] for let in b.reachable(results) if isinstance(let.op, State)]
        for name in dict.fromkeys(hop.name for hop in hops if isinstance(hop, Item)):
            relation = b.model.links.relations.get(name)
            key = (b.tag, b.accessors.steps(name) if relation is None else relation.steps)
            if key not in self._relations:
                self._relations[key] = name
                if key in self._read:
                    raise Restart


def is_item_of_numbers(b: TorchBuilder, name: str, path: Path, sample: Any) -> bool:
    """Is it an item of a list of numbers? Such a list is told by its length, and one with None in it is refused."""
    item = None if path else b.accessors.item(name)
    return sample is not None and item is not None and item[0] in b.knowledge.item_lists


def may_be_empty(b: TorchBuilder, steps: Steps, sample: Any) -> bool:
    """Are there both lists of numbers and empty ones in this place?"""
    is_real = type(b.facts.oracle) is Seen  # a list of nodes may be supposed to be empty
    return (is_real or bool(sample)) and b.model.is_mixed((*steps, TRUTH), str(bool(sample)))


def refuse_many_items(name: str, count: int) -> None:
    """Refuse code that goes through a list of very many numbers on a node: each item would be a field of its own."""
    if count > MOST_ITEMS:
        raise fail(
            f"{count} items of node.{name}, a list of Python's numbers, are taken one by one, and code is compiled for "
            f"{MOST_ITEMS} of them at most. Make a tensor of it, torch.tensor(...), which is computed with as a "
            "whole, or compute what is needed of it when the structure is made."
        )
