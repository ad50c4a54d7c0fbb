"""Positions: the items of a list, as nodes of the model that are taken one after the other."""

from __future__ import annotations

from cortex.ir.node import Node, node

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
