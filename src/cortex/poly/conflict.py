"""Why a change of order is not legal: two accesses that may touch one element, and how far apart they then are."""

from __future__ import annotations

from dataclasses import dataclass

from cortex.poly.accesses import Access

Distance = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Conflict:
    """`first` and `second` may touch one element, a write among them.

    `distance` says for the loops around both by how many iterations the second is later: "+1", "-2 or less", "any".
    """

    first: Access
    second: Access
    distance: Distance

    def __str__(self) -> str:
        text = f"{self.first} and {self.second} may touch one element"
        where = ", ".join(f"{loop}: {by}" for loop, by in self.distance)
        return f"{text} at distance ({where})" if where else text
