"""Sequences as linked lists: a sequence model recurses from the last element to the first through `prev`."""

from __future__ import annotations

from collections.abc import Iterable

from cortex.errors import StructureError
from cortex.structures.tree import Link


def sequence(words: Iterable[int]) -> Link:
    """The last `Link` of a list of word ids; `link.prev` is the element before, None at the first."""
    last: Link | None = None
    for word in words:
        last = Link(last, word)
    if last is None:
        raise StructureError("sequence([]): there is no last element; give at least one word")
    return last
