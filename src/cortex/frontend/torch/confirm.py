"""The check that user code does the same again.

Every kind is traced twice: in the draft, or once more when all kinds are known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import zip_longest

from cortex.errors import ModelError
from cortex.frontend.facts import Seen
from cortex.ra.ir import Let


class TracedOnce:
    """The nodes whose traces have to be confirmed."""

    def __init__(self) -> None:
        self._drafted: dict[Hashable, list[Let]] = {}
        """What the draft has computed, by role and what was asked."""
        self._nodes: list[tuple[Seen, list[Let]]] = []

    def forget(self) -> None:
        """Everything is traced again; what the draft has found stays for that."""
        self._nodes.clear()

    def draft(self, asked: Hashable, lets: list[Let]) -> None:
        """A node was traced in the draft."""
        self._drafted[asked] = lets

    def add(self, asked: Hashable, oracle: Seen, lets: list[Let]) -> None:
        """A node was traced for good."""
        if self._drafted.pop(asked, None) != lets:
            self._nodes.append((oracle, lets))

    def confirm(self, model: str, trace: Callable[[Seen], list[Let]]) -> None:
        """Refuse a model that computes something else for the same node.

        Where more is known than when a node was traced first, its trace may differ; two traces in a row must not.
        """
        nodes, self._nodes = self._nodes, []
        for oracle, lets in nodes:
            once = trace(oracle)
            again = once if once == lets else trace(oracle)
            if again != once:
                differs = (new for new, old in zip_longest(again, once) if new != old)
                raise ModelError(
                    f"'{model}' computes something else when it is run for the same node once more: it draws random "
                    "numbers, reads a clock, or keeps something between calls. Make it a field of the node, or an "
                    "argument.",
                    next((let.span for let in differs if let is not None), None),
                )
