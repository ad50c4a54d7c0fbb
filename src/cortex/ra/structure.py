"""How a model names parts of a structure: the way to a child, positions in a list, and collections of nodes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from cortex.ir.node import Node, node


@node
class Slot(Node):
    """The child in the attribute `name` (`node.left`)."""

    name: str


@node
class Item(Node):
    """Child `index` of the list relation `name` (`node.children[2]`); the kind's guard makes it exist."""

    name: str
    index: int


@node
class Each(Node):
    """Each child of the list relation `name` in turn; the let that uses it is per edge of that relation."""

    name: str


Hop: TypeAlias = Slot | Item | Each


@node
class Collect(Node):
    """What a node adds to the collection `name`, in order: itself (None), and all that a child adds to it."""

    name: str
    entries: tuple[Slot | Item | Each | None, ...]


@node
class Gather(Node):
    """The list relation `name` consists of the nodes in the collection of the child in the slot `start`, in order."""

    name: str
    start: str
    collection: str


@node
class Rows(Node):
    """The result `name` has rows: the state `state` of the nodes in the list relation `relation`, in order.

    `how` says that the last comes first ("reversed"), or that the relation is a slot. Several of one name follow each
    other.
    """

    name: str
    relation: str
    state: str
    how: Literal["list", "reversed", "slot"] = "list"


POSITION = "(position)"
"""What the guards of kinds of positions ask first; no node of the user's is asked."""


@node
class Positions(Node):
    """A routine with a node for each item of the list `relation` of the nodes that read its positions, their owners.

    Owners have slots to the `first` and the `last` position, and a list of `all`. A position has slots to the one
    `before` it, which is that of the next item unless the routine is `is_forward`, to the `owner`'s values that do not
    depend on positions, and `at` the same place, to the item of the relation or to the position of another routine.
    These are ordinary relations of the model, and positions are of ordinary kinds, whose guards begin with `name`; for
    the owner's values, with `of_owner`. Slots that nobody reads are no relations of the model.
    """

    name: str
    relation: str
    is_forward: bool
    before: str
    owner: str
    first: str
    last: str
    all: str
    at: tuple[tuple[str, str], ...]
    of_owner: str
