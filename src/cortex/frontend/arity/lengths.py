"""Which numbers of children a kind of any arity has been checked for.

A kind of any arity is found from traces for a few numbers of children, and code may treat any other number specially:
`if len(node.children) == self.special`, `node.children[:self.most]`. So it is used for no number before the trace for
that number has been found to be an instance of it (see `check`). Requests show which numbers there are; the linearizer
looks each node's up in `table`.

Numbers above `most` are not told apart: they are taken to be like `most`. That is right where the model knows of no
number that is larger (see `mentions`); where it does, no number above `most` is ever in the table.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from cortex.frontend.arity.mentions import EXACT

MOST = 1 << 20
"""Of any table: the largest number of children that can be told apart from others."""

ENTRIES = 1 << 19
"""Of a table. A kind that leaves the lengths of several lists open is checked for each combination of them."""


class CheckedLengths:
    """Numbers of children in some lists, one byte for each combination: 1 where it has been checked.

    The table is shared with linearizers, which see at once what is added. `asked` are the attributes of children that
    the kind need not ask about: whether they are None makes no difference. `open` are all lists whose lengths the kind
    leaves open: these, and those that are as long as one of them but lead to no nodes of the model.
    """

    def __init__(
        self, lists: tuple[str, ...], asked: frozenset[str], open: tuple[str, ...] = (), most: int = EXACT
    ) -> None:
        self.lists = lists
        self.open = open or lists
        self.asked = asked
        several = len(lists) > 1
        self.most = min(most, int(ENTRIES ** (1 / len(lists)) + 1e-9) - 1 if several else MOST)
        self.table: npt.NDArray[np.uint8] = np.zeros((self.most + 1,) * len(lists), np.uint8)

    def add(self, lengths: Mapping[str, int]) -> None:
        """The kind is right for nodes with these numbers of children."""
        self.table[self._entry(lengths)] = 1

    def __contains__(self, lengths: Mapping[str, int]) -> bool:
        return bool(self.table[self._entry(lengths)])

    def checked_at(self, lengths: Mapping[str, int]) -> dict[str, int]:
        """The numbers of children for which nodes with these numbers are checked."""
        return {name: min(lengths[name], self.most) for name in self.lists}

    def _entry(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(self.checked_at(lengths).values())
