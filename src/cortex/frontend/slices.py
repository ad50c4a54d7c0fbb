"""Slices of lists of nodes, and items at fixed places, as lists of children by themselves: `node.children[:300]`.

At first the items of a slice are items of the list, each by itself. Where numbers of children have to be alike, that
does not do: then the slice is a list, which has a length of its own, and a kind of any arity is found for it as for the
whole list. The first child is then the only one of `node.children[:1]`.
"""

from __future__ import annotations

from cortex.frontend.signals import Restart


class Slices:
    """Whether the code takes slices of lists of nodes, or items at fixed places, and whether they are lists."""

    def __init__(self) -> None:
        self.are_taken = False
        self.are_lists = False
        self.items_are_taken = False
        self.items_are_lists = False

    def make_lists(self) -> None:
        """Take slices for lists from now on, if there are any."""
        if self.are_taken and not self.are_lists:
            self.are_lists = True
            raise Restart

    def make_lists_of_items(self) -> None:
        """Take slices for lists, and items at fixed places for items of slices, if there are any."""
        self.make_lists()
        if self.items_are_taken and not self.items_are_lists:
            self.are_lists = self.items_are_lists = True
            raise Restart
