"""Slices of lists of nodes as lists of children by themselves: `for child in node.children[:300]`.

At first the items of a slice are items of the list, each by itself. Where a node has many that does not do: then the
slice is a list, which has a length of its own, and a kind of any arity is found for it as for the whole list.
"""

from __future__ import annotations

from cortex.frontend.signals import Restart


class Slices:
    """Whether the code takes slices of lists of nodes, and whether they are lists of children."""

    def __init__(self) -> None:
        self.are_taken = False
        self.are_lists = False

    def make_lists(self) -> None:
        """Take slices for lists from now on, if there are any."""
        if self.are_taken and not self.are_lists:
            self.are_lists = True
            raise Restart
