"""What arity/ and tracing ask about items of lists that code tells apart, such as children by their tags."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from cortex.ra.ir import Fact

if TYPE_CHECKING:
    from cortex.frontend.decision import Traced
    from cortex.frontend.facts import Seen
    from cortex.frontend.knowledge import Knowledge


class ItemsApart:
    """What is known of items of lists that code tells apart (torch/families.py); nothing, where calls are not seen."""

    def names(self, k: Knowledge) -> Container[str]:
        """The lists of items that are alike."""
        return ()

    def learn(self, k: Knowledge, guard: Iterable[Fact], lists: Iterable[str]) -> None:
        """A trace asks such questions; start again where they are about items of these lists."""

    def close(self, k: Knowledge, names: Iterable[str]) -> None:
        """Do not tell items apart any more by lists of which these are some."""

    def check_order(self, k: Knowledge, kind: Traced, seen: Seen) -> None:
        """See that a kind of certain numbers of such items does not depend on their order."""
